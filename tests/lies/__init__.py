"""Planted lies: each makes a trace lie in one place.

`plant(kind, rows, rng)` picks a suitable place, changes one fact there so that the record stays
plausible in itself, and returns the new rows with a description of the `Lie`; None where the trace
offers no place. The input rows are never changed; rows that the lie does not touch are shared.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from zlib import crc32

from . import (
    bodies,
    conditions,
    cron,
    deletions,
    events,
    finalizers,
    mixups,
    outcomes,
    pods,
    silence,
    specs,
    status,
    ttl,
    writes,
)
from .record import Edit, Lie, Record, Row

Planter = Callable[[Record, Edit, random.Random], Lie | None]

KINDS: dict[str, Planter] = {
    name: planter
    for module in (
        pods,
        bodies,
        status,
        writes,
        conditions,
        finalizers,
        deletions,
        specs,
        outcomes,
        events,
        silence,
        cron,
        ttl,
        mixups,
    )
    for name, planter in module.KINDS.items()
}


def plant(kind: str, rows: list[Row] | Record, rng: random.Random) -> tuple[list[Row], Lie] | None:
    """Plant one lie of a kind; `rows` may be indexed already."""
    record = rows if isinstance(rows, Record) else Record(rows)
    edit = Edit(record)
    lie = KINDS[kind](record, edit, rng)
    if lie is None:
        return None
    return edit.rows(), lie


def draws_of(kind: str, name: str, salt: object = 0) -> random.Random:
    """What draws the place of a lie of a kind in a trace: the same place for the same salt."""
    return random.Random(crc32(f"{kind}/{name}/{salt}".encode()))


__all__ = ["KINDS", "Lie", "Record", "draws_of", "plant"]
