"""A larger trace from a real one: N copies of a watch log side by side, in namespaces of their own.

Every copy keeps its timing; namespaces, uids and resourceVersions are changed consistently, so that
the copies are as many unrelated sets of Jobs. The lines of the copies are interleaved as they would
have arrived.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

import zstandard

_SCENARIO = re.compile(r'"(?:namespace|name)":"t-[a-z0-9-]+"')
_UID = re.compile(
    r"\b[0-9a-f]{4}(?=[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)"
)
_REVISION = re.compile(r'("resourceVersion":")(\d+)(")')
_NAMESPACE = re.compile(r'("namespace":"t-[a-z0-9-]+)(")')
_NAMESPACE_NAME = re.compile(r'("name":"t-[a-z0-9-]+)(","uid")')


def multiplied(source: Path, copies: int) -> Iterator[str]:
    """The lines of `copies` copies of a compressed watch log."""
    with source.open("rb") as packed:
        text = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(packed), "utf-8")
        for line in text:
            if not _SCENARIO.search(line):  # the cluster's own: one lease, one kube-system
                yield line
                continue
            for number in range(copies):
                yield _copy(line, number, copies)


def _copy(line: str, number: int, copies: int) -> str:
    line = _UID.sub(f"{number:04x}", line)
    line = _REVISION.sub(lambda m: f"{m[1]}{int(m[2]) * copies + number}{m[3]}", line)
    line = _NAMESPACE.sub(rf"\1-{number:04d}\2", line)
    return _NAMESPACE_NAME.sub(rf"\1-{number:04d}\2", line)


def write_multiplied(source: Path, target: Path, copies: int) -> int:
    """Write the multiplied log, zstd-compressed; returns the number of lines."""
    lines = 0
    with (
        target.open("wb") as out,
        zstandard.ZstdCompressor(level=3).stream_writer(out) as packed,
    ):
        for line in multiplied(source, copies):
            packed.write(line.encode())
            lines += 1
    return lines
