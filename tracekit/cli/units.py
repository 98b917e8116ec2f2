"""Durations, sizes and places as people write them, and text that is safe to print."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracekit.base.time_input import LONGEST_S, duration_s
from tracekit.trace.stores.place import is_url

if TYPE_CHECKING:
    _Seconds = click.ParamType[float]
    _Bytes = click.ParamType[int]
else:  # older releases of click have no generic type
    _Seconds = _Bytes = click.ParamType

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kKMGT]i?)?B?")
_POWERS = "KMGT"
#: No file is so long: off_t is a signed number of 64 bits (POSIX <sys/types.h>, large files).
_TOO_LARGE = 1 << 63
#: What `-o` takes elsewhere: whoever writes one of these does not want a file of that name.
_FORMAT_NAMES = frozenset(
    {
        "csv", "html", "json", "jsonl", "junit", "line", "markdown", "name", "otlp", "parquet",
        "sarif", "table", "text", "wide", "yaml",
    }
)  # fmt: skip


class Duration(_Seconds):
    """A length of time, in seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read 90, 90s, 10m, 1h30m or 7d."""
        if isinstance(value, (int, float)):
            return float(value)
        seconds = duration_s(str(value))
        if not seconds or seconds > LONGEST_S:
            self.fail(f"{value!r} is no duration: write it like 90s, 10m, 1h30m or 7d.", param, ctx)
        return seconds


class Size(_Bytes):
    """A number of bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read 1000000, 512MiB, 1GiB or 2GB."""
        if isinstance(value, int):
            return value
        match = _SIZE.fullmatch(str(value).strip())
        size = float(match[1]) * _bytes_of(match[2] or "") if match is not None else 0
        if not 1 <= size < _TOO_LARGE:
            self.fail(f"{value!r} is no size: write it like 512MiB or 1GiB.", param, ctx)
        return int(size)


def _bytes_of(unit: str) -> int:
    """The bytes of a unit like k, MI or Gi; one where there is none."""
    base = 1024 if unit[1:] else 1000
    return base ** (_POWERS.index(unit[0].upper()) + 1) if unit else 1


class Named(click.Path):
    """A file or folder: "", what a variable of a shell is that was not set, would be `.`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse what names nothing."""
        if not value:
            self.fail("'' names nothing: name a file or directory, or leave it out.", param, ctx)
        return super().convert(value, param, ctx)


class Here(Named):
    """Where to write on this machine."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse a URL, which would name a folder `s3:`, and a format, which would name a file."""
        if str(value).lower() in _FORMAT_NAMES:
            self.fail(
                f"{value!r} is a format, and here {'a file' if param is None else param.opts[0]} "
                f"says where to write: name a place like ./{value}, or like run.{value}.",
                param,
                ctx,
            )
        if is_url(str(value)):
            self.fail(
                f"{value!r} is a URL, and only `record` writes to object storage: name a place on "
                "this machine and copy it from there.",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


DURATION = Duration()
SIZE = Size()
#: So many processes at most: each takes about 100 MB, and all are begun at once.
PROCESSES = click.IntRange(1, 1024)
NAMED = Named()
NAMED_AS_PATH = Named(path_type=Path)
HERE = Here()
HERE_AS_PATH = Here(path_type=Path)


def format_bytes(count: float) -> str:
    """Write a size the way `ls -h` does."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:  # noqa: PLR2004 (the base of the units above)
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
