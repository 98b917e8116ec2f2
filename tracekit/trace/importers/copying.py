"""Rows as a reader hands them out, back into what a writer takes: for copies of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracekit.trace.format.model import Call, Gap, Origin

ORIGIN_COLUMNS: tuple[str, ...] = tuple(Origin.__slots__)
_CALL = ("namespace", "name", "uid", "job", "cronjob", "code", "reason", "message")
_GAP = ("gap_last_rv", "gap_next_rv", "gap_from_ns", "gap_until_ns")
#: All that a copy needs of a row; the typed columns are made again from `raw`.
COPIED_COLUMNS: tuple[str, ...] = (
    *("seq", "stream", "type", "recv_ns", "synthesized", "raw", "raw_bytes"),
    *ORIGIN_COLUMNS,
    *_CALL,
    *_GAP,
    "gap_reason",
)


def origin_of(row: Mapping[str, Any]) -> Origin:
    """How the row is known."""
    return Origin(**{name: row[name] for name in ORIGIN_COLUMNS})


def call_of(row: Mapping[str, Any], raw: bytes) -> Call:
    """A CALL row, with that text as its entry."""
    fields = {name: row[name] for name in _CALL}
    return Call(row["stream"], row["recv_ns"], raw, origin_of(row), **fields)


def gap_of(row: Mapping[str, Any]) -> Gap:
    """A GAP row."""
    return Gap(row["stream"], row["gap_reason"], *(row[name] for name in _GAP))
