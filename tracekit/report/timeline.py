"""What happened in a time, as text and as a document: `tracekit timeline`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TextIO

from tracekit.answers.happening import Happening
from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.report.table import write_line, write_parts

_TIME_CHARS = len("22:41:03.123  ")


def write_timeline(found: Sequence[Happening], out: TextIO) -> None:
    """One line each, on a terminal folded below itself; a day is named where it begins."""
    day = ""
    for happening in found:
        text = format_rfc3339(happening.at_ns - happening.at_ns % 1_000_000) or ""
        today, _, time = text.removesuffix("Z").partition("T")
        if today != day:
            write_line(f"{today} (UTC)", out, style="bold")
            day = today
        clock = f"{time}.000" if "." not in time else time.ljust(_TIME_CHARS - 2, "0")
        about = f"{happening.kind} {key_of(happening)}".strip()
        parts = [
            (f"{clock}  ", "dim"),
            (f"{about}: " if about else "", "bold"),
            (happening.what, "red" if happening.is_trouble else ""),
            (f", by {happening.who}" if happening.who else "", "dim"),
        ]
        write_parts(parts, out, 0, _TIME_CHARS)


def key_of(happening: Happening) -> str:
    """The object as users name it."""
    return "/".join(part for part in (happening.namespace, happening.name) if part)


def happening_document(happening: Happening) -> dict[str, Any]:
    """One of them as JSON has it."""
    return {
        "time_ns": happening.at_ns,
        "time": format_rfc3339(happening.at_ns),
        "kind": happening.kind or None,
        "namespace": happening.namespace or None,
        "name": happening.name or None,
        "job": happening.job or None,
        "cronjob": happening.cronjob or None,
        "what": happening.what,
        "who": happening.who,
        "is_trouble": happening.is_trouble,
    }
