"""What a record would hold if the recorder had been there less: a later start, an earlier end, a gap.

Rows go, and the record says so the way a recorder says it: streams begin with a list of what was
there, an interrupted one lists anew, a stream that nobody recorded has no rows at all.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from tracekit.base.kube.timestamps import NS_PER_S

Row = dict[str, Any]
_STATES = ("LIST", "ADDED", "MODIFIED", "DELETED")


class Standing:
    """The objects that rows leave standing, by stream."""

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self._objects: dict[str, dict[str, Row]] = {}
        self._newest: dict[str, int] = {}

    @property
    def streams(self) -> list[str]:
        """All that had a row."""
        return list(self._objects)

    def take(self, row: Row) -> None:
        """Take in the next row of the record."""
        stream, kind, obj = row["resource"], row["type"], row["object"]
        objects = self._objects.setdefault(stream, {})
        meta = obj.get("metadata") or {}
        version = meta.get("resourceVersion") or obj.get("resourceVersion")
        if version is not None and str(version).isdigit():
            self._newest[stream] = max(self._newest.get(stream, 0), int(version))
        if kind == "LIST_BEGIN":
            objects.clear()
        elif kind == "DELETED":
            objects.pop(meta.get("uid", ""), None)
        elif kind in _STATES:
            objects[meta["uid"]] = obj

    def namespaces(self, stream: str) -> list[str]:
        """Those of the stream's objects."""
        found = self._objects[stream].values()
        return sorted({obj["metadata"].get("namespace", "") for obj in found})

    def listed(self, stream: str, at_ns: int, *, namespace: str | None = None) -> list[Row]:
        """The rows of a list that was received at `at_ns`, of one namespace if it is named."""
        items = [
            obj
            for obj in self._objects[stream].values()
            if namespace is None or obj["metadata"].get("namespace", "") == namespace
        ]
        marker = {"resourceVersion": str(self._newest.get(stream, 0))}
        return [
            {"recv": at_ns, "resource": stream, "type": kind, "object": item}
            for kind, found in (("LIST_BEGIN", [marker]), ("LIST", items), ("LIST_END", [marker]))
            for item in found
        ]


def late_start(rows: Iterable[Row], at_ns: int) -> list[Row]:
    """The record of a recorder that began at `at_ns`."""
    before, after = _parted(rows, at_ns)
    return [*_listing(before, at_ns), *after]


def early_end(rows: Iterable[Row], at_ns: int) -> list[Row]:
    """The record of a recorder that was stopped at `at_ns`."""
    return _parted(rows, at_ns)[0]


def with_gap(rows: Iterable[Row], from_ns: int, until_ns: int) -> list[Row]:
    """The record of a recorder that saw nothing from `from_ns` to `until_ns` and then listed."""
    before, rest = _parted(rows, from_ns)
    hidden, after = _parted(rest, until_ns)
    return [*before, *_listing([*before, *hidden], until_ns), *after]


def without(rows: Iterable[Row], streams: Collection[str]) -> list[Row]:
    """The record of a recorder that did not follow some streams."""
    return [row for row in rows if row["resource"] not in streams]


def random_cut(rows: Sequence[Row], chance: random.Random) -> tuple[str, list[Row]]:
    """A record cut at random, and in words how: anywhere, or in the midst of what happened."""
    first, last = rows[0]["recv"], rows[-1]["recv"]
    at_ns = _moment(rows, chance)
    at_s = (at_ns - first) / NS_PER_S
    match chance.choice(("start", "end", "gap", "gap", "gaps", "no Events", "middle")):
        case "start":
            return f"from {at_s:.3f} s on", late_start(rows, at_ns)
        case "end":
            return f"up to {at_s:.3f} s", early_end(rows, at_ns)
        case "middle":
            until_ns = chance.randrange(at_ns, last)
            what = f"from {at_s:.3f} s to {(until_ns - first) / NS_PER_S:.3f} s"
            return what, early_end(late_start(rows, at_ns), until_ns)
        case "no Events":
            return "without Events", without(rows, {"events"})
        case kind:
            kept, said = list(rows), []
            for _ in range(1 if kind == "gap" else 3):
                long_ns = int(chance.choice((0.05, 0.5, 2, 4, 10, 40)) * NS_PER_S)
                kept = with_gap(kept, at_ns, min(last, at_ns + long_ns))
                said.append(f"{long_ns / NS_PER_S:g} s from {(at_ns - first) / NS_PER_S:.3f} s on")
                at_ns = _moment(rows, chance)
            return f"without {' and '.join(said)}", kept


def _moment(rows: Sequence[Row], chance: random.Random) -> int:
    first, last = rows[0]["recv"], rows[-1]["recv"]
    if chance.random() < 1 / 2:
        return chance.randrange(first, last)
    beside_ns = int(chance.choice((0, 0, 1e-6, 1e-3, 0.1, -0.1)) * NS_PER_S)
    at_ns = chance.choice(rows)["recv"] + beside_ns
    return int(min(max(at_ns, first + 1), last - 1))


def _parted(rows: Iterable[Row], at_ns: int) -> tuple[list[Row], list[Row]]:
    before: list[Row] = []
    after: list[Row] = []
    for row in rows:
        (before if row["recv"] < at_ns else after).append(row)
    return before, after


def _listing(rows: Iterable[Row], at_ns: int) -> list[Row]:
    """A list of every stream, with the objects that the rows leave standing."""
    standing = Standing()
    for row in rows:
        standing.take(row)
    return [row for stream in standing.streams for row in standing.listed(stream, at_ns)]
