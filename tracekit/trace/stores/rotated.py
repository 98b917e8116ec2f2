"""The traces of a folder that a recorder rotates: one for each period, named by when it was begun.

Such names sort by time.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.trace.format.model import HEADER_NAME

_NAME = re.compile(r"\d{8}T\d{6}Z(?:-\d+)?")
#: What one recorder takes from one trace to the next, and names leave out of a second.
_SLACK_NS = 60 * NS_PER_S


def new_trace_path(folder: Path, now_ns: int) -> Path:
    """Choose the path of a trace that begins now."""
    stamp = datetime.fromtimestamp(now_ns // NS_PER_S, UTC).strftime("%Y%m%dT%H%M%SZ")
    path = folder / stamp
    number = 1
    while path.exists():
        number += 1
        path = folder / f"{stamp}-{number}"
    return path


def rotated_traces(folder: Path) -> list[Path]:
    """List the traces of a folder, oldest first."""
    if not folder.is_dir():
        return []
    found = [
        path
        for path in folder.iterdir()
        if _NAME.fullmatch(path.name) and (path / HEADER_NAME).is_file()
    ]
    return sorted(found, key=lambda path: path.name)


def begun_ns(trace: str) -> int | None:
    """When the trace was begun, as its name has it; None where it is of another kind."""
    name = trace.rstrip("/").rpartition("/")[2]
    if not _NAME.fullmatch(name):
        return None
    try:
        begun = datetime.strptime(name.partition("-")[0], "%Y%m%dT%H%M%S%z")
    except ValueError:  # the 31st of February
        return None
    return int(begun.timestamp()) * NS_PER_S


def overlapping(
    traces: Sequence[str], from_ns: int | None, until_ns: int | None
) -> tuple[list[str], int]:
    """Those that may hold something of a time, and how many were left out; none is opened.

    A trace that a rotation ended has nothing of later than the beginning of the next one in its
    folder, but for a moment; those that are named otherwise may hold anything.
    """
    placed = [(trace, _folder_of(trace), begun_ns(trace)) for trace in traces]
    by_folder: dict[str, set[int]] = {}
    for _, folder, at_ns in placed:
        if at_ns is not None:
            by_folder.setdefault(folder, set()).add(at_ns)
    begins = {folder: sorted(times) for folder, times in by_folder.items()}
    kept = []
    for trace, folder, at_ns in placed:
        if at_ns is not None:
            next_at = bisect_right(begins[folder], at_ns)
            ended_ns = begins[folder][next_at] if next_at < len(begins[folder]) else None
            if until_ns is not None and at_ns - _SLACK_NS > until_ns:
                continue
            if from_ns is not None and ended_ns is not None and ended_ns + _SLACK_NS < from_ns:
                continue
        kept.append(trace)
    return kept, len(traces) - len(kept)


def _folder_of(trace: str) -> str:
    return trace.rstrip("/").rpartition("/")[0]
