"""The same run as other recorders would have seen it: receive times, rows or clocks change.

Each view takes the rows of a watch log in their order and gives those of another recorder of the
same run; the rows that were given are left as they are. What a controller did is not touched but
where a view is of another clock (`other_clocks`), so that a divergence that is in no record without
the view is a false alarm.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tests.support.erasures import Row, Standing, without
from tests.support.other_clocks import api_server_ahead, writers_ahead
from tracekit.base.kube.timestamps import NS_PER_S

Rows = Sequence[Row]
_STEP_S = 0.5  # of a random walk
_BURST_NS = 20_000  # between rows that come at once
_CONTROLS = ("LIST_BEGIN", "LIST_END", "BOOKMARK", "ERROR", "NOTE")


@dataclass(frozen=True)
class View:
    """One way in which a run can have been seen, and what a replay may say of it at most."""

    see: Callable[[Rows, random.Random], list[Row]]
    #: Share of the actions that may become unknowable by it; None: the record holds less.
    unknowable_max: float | None
    #: Whether each verdict must be what it was.
    same: bool = False


def seen(view: str, rows: Rows, seed: int | str = 0) -> list[Row]:
    """The rows of a record as a recorder with this view of `VIEWS` had them; the same for a seed."""
    return VIEWS[view].see(rows, random.Random(f"{view} {seed}"))


def received(row: Row, at_ns: int) -> Row:
    """The row as received at another time."""
    return {**row, "recv": at_ns}


# The recorder's clock


def offset(rows: Rows, _chance: random.Random, *, by_s: float) -> list[Row]:
    """Its clock is ahead by so much, or behind."""
    return [received(row, row["recv"] + _ns(by_s)) for row in rows]


def stepped(rows: Rows, _chance: random.Random, *, by_s: float) -> list[Row]:
    """Its clock is set by so much midway, so that receive times run back where it is set back."""
    middle = len(rows) // 2
    return [*rows[:middle], *offset(rows[middle:], _chance, by_s=by_s)]


# Streams that are late


def lagging(rows: Rows, chance: random.Random, *, max_s: Mapping[str, float] | float) -> list[Row]:
    """Each stream is late by a random walk up to so much; streams without a maximum are not late.

    Each keeps its own order; streams are laid between each other anew, by when they come.
    """
    walks: dict[str, Iterator[int]] = {}
    lags: dict[str, tuple[int, int]] = {}  # the step of its walk that a stream is at, its lag there
    newest: dict[str, int] = {}
    first, out = rows[0]["recv"], []
    for row in rows:
        stream = row["resource"]
        limit_s = max_s if isinstance(max_s, float) else max_s.get(stream, 0.0)
        if stream not in walks:
            walks[stream] = _walk(_ns(limit_s), random.Random(f"{stream} {chance.random()}"))
            lags[stream] = (-1, 0)
        step = (row["recv"] - first) // _ns(_STEP_S)
        while lags[stream][0] < step:
            lags[stream] = (lags[stream][0] + 1, next(walks[stream]))
        at_ns = newest[stream] = max(newest.get(stream, 0), row["recv"] + lags[stream][1])
        out.append(received(row, at_ns))
    return sorted(out, key=lambda row: row["recv"])


def frozen(rows: Rows, chance: random.Random, *, for_s: float, times: int) -> list[Row]:
    """All streams stand still for so long and then come at once, in any order between streams."""
    first, last = rows[0]["recv"], rows[-1]["recv"]
    part, long = (last - first) // (times + 1), _ns(for_s)
    ends = [first + part * (number + 1) + long // 2 for number in range(times)]
    streams = sorted({row["resource"] for row in rows})
    chance.shuffle(streams)
    come: list[tuple[int, int, Row]] = []
    for row in rows:
        end = next((end for end in ends if end - long <= row["recv"] < end), None)
        if end is None:
            come.append((row["recv"], 0, row))
        else:
            come.append((end, streams.index(row["resource"]), received(row, end)))
    return [row for *_, row in sorted(come, key=lambda at: at[:2])]


# What was asked for


def one_namespace(rows: Rows, _chance: random.Random) -> list[Row]:
    """Only the namespace with the most Jobs and CronJobs was asked for, and nobody says so."""
    counted = Counter(
        row["object"]["metadata"].get("namespace", "")
        for row in rows
        if row["resource"] in ("jobs", "cronjobs") and row["type"] not in _CONTROLS
    )
    chosen = counted.most_common(1)[0][0] if counted else ""
    return [row for row in rows if row["type"] in _CONTROLS or _of(row, chosen)]


def _of(row: Row, namespace: str) -> bool:
    meta = row["object"]["metadata"]
    named = meta["name"] if row["resource"] == "namespaces" else meta.get("namespace")
    return bool(named == namespace)


def only(rows: Rows, _chance: random.Random, *, streams: Collection[str]) -> list[Row]:
    """Only some streams were followed."""
    return [row for row in rows if row["resource"] in streams]


def left_out(rows: Rows, _chance: random.Random, *, streams: Collection[str]) -> list[Row]:
    """Some streams were not followed."""
    return without(rows, streams)


def unmanaged(rows: Rows, _chance: random.Random) -> list[Row]:
    """managedFields are taken off, as kubectl and many recorders do."""
    out = []
    for row in rows:
        meta = row["object"].get("metadata") or {}
        if "managedFields" in meta:
            less = {key: value for key, value in meta.items() if key != "managedFields"}
            row = {**row, "object": {**row["object"], "metadata": less}}  # noqa: PLW2901
        out.append(row)
    return out


# Lists without a watch


def looked(
    rows: Rows, _chance: random.Random, *, every_s: float, apart_s: float = 0.05
) -> list[Row]:
    """All streams are listed every so many seconds, one after the other, and nothing is watched."""
    first, last = rows[0]["recv"], rows[-1]["recv"]
    streams = list(dict.fromkeys(row["resource"] for row in rows))
    due: list[tuple[int, str]] = []
    start = first + min(_ns(every_s), (last - first) // 2)
    while start <= last:
        due += [(start + _ns(apart_s) * number, stream) for number, stream in enumerate(streams)]
        start += _ns(every_s)
    return _lists(rows, [at for at in due if at[0] <= last], by_namespace=False)


def looked_once(
    rows: Rows, _chance: random.Random, *, apart_s: float, by_namespace: bool
) -> list[Row]:
    """Each stream is listed once, so long after the one before; one list a namespace, if asked."""
    first, last = rows[0]["recv"], rows[-1]["recv"]
    streams = list(dict.fromkeys(row["resource"] for row in rows))
    middle = first + (last - first) // 2
    apart = min(_ns(apart_s), (last - middle) // len(streams))
    due = [(middle + apart * number, stream) for number, stream in enumerate(streams)]
    return _lists(rows, due, by_namespace=by_namespace)


def _lists(rows: Rows, due: list[tuple[int, str]], *, by_namespace: bool) -> list[Row]:
    standing, out = Standing(), []
    waiting = iter(rows)
    row = next(waiting, None)
    for at_ns, stream in sorted(due):
        while row is not None and row["recv"] <= at_ns:
            standing.take(row)
            row = next(waiting, None)
        if stream not in standing.streams:
            continue
        of = standing.namespaces(stream) if by_namespace else [None]
        for number, namespace in enumerate(of):
            out += standing.listed(stream, at_ns + number * _BURST_NS, namespace=namespace)
    return out


def _walk(limit_ns: int, chance: random.Random) -> Iterator[int]:
    """A random walk between nothing and a limit, in steps of up to a fifth of it."""
    at = chance.randint(0, limit_ns)
    while True:
        yield at
        at = min(max(at + chance.randint(-limit_ns // 5, limit_ns // 5), 0), limit_ns)


def _ns(seconds: float) -> int:
    return round(seconds * NS_PER_S)


_WRITERS = {
    "controllers +1 s": partial(writers_ahead, by_ns=NS_PER_S, kubelets=False),
    "controllers +3 s": partial(writers_ahead, by_ns=3 * NS_PER_S, kubelets=False),
    "kubelets -3 s": partial(writers_ahead, by_ns=-3 * NS_PER_S, controllers=False),
    "kubelets -1 s": partial(writers_ahead, by_ns=-NS_PER_S, controllers=False),
    "controllers and kubelets +1 s": partial(writers_ahead, by_ns=NS_PER_S),
    "controllers and kubelets +3 s": partial(writers_ahead, by_ns=3 * NS_PER_S),
}
_OFFSETS_S = (-300, -60, -10, -3, -1, -0.3, -0.1, 0.1, 0.3, 1, 3, 10, 60, 300)

#: By name, in the order of the table.
VIEWS: dict[str, View] = {
    **{f"offset {by:+g} s": View(partial(offset, by_s=by), 0.0, same=True) for by in _OFFSETS_S},
    **{f"step {by:+g} s": View(partial(stepped, by_s=by), 0.01) for by in (-60, -1, 1, 60)},
    "lag 2 s": View(partial(lagging, max_s=2.0), 0.10),
    "lag 4 s": View(partial(lagging, max_s=4.0), None),
    "lag 60 s": View(partial(lagging, max_s=60.0), None),
    "freeze 3 x 8 s": View(partial(frozen, for_s=8.0, times=3), 0.10),
    "late pods 5 s": View(partial(lagging, max_s={"pods": 5.0}), None),
    "late jobs 3 s": View(partial(lagging, max_s={"jobs": 3.0}), None),
    "late events 3 s": View(partial(lagging, max_s={"events": 3.0}), None),
    "one namespace": View(one_namespace, None),
    "jobs and pods": View(partial(only, streams=("jobs", "pods")), None),
    "jobs": View(partial(only, streams=("jobs",)), None),
    "cronjobs and jobs": View(partial(only, streams=("cronjobs", "jobs")), None),
    "no pods": View(partial(left_out, streams=("pods",)), None),
    "no jobs": View(partial(left_out, streams=("jobs",)), None),
    "no leases": View(partial(left_out, streams=("leases",)), None),
    "no Events": View(partial(left_out, streams=("events",)), None),
    "no managedFields": View(unmanaged, None),
    "lists 10 s apart": View(partial(looked_once, apart_s=10, by_namespace=False), None),
    "lists by namespace": View(partial(looked_once, apart_s=0.05, by_namespace=True), None),
    "polls every 10 s": View(partial(looked, every_s=10), None),
    "polls every 60 s": View(partial(looked, every_s=60), None),
    **{
        name: View(see, 0.01 if name == "controllers +1 s" else None)
        for name, see in _WRITERS.items()
    },
    "an API server +2 s": View(partial(api_server_ahead, by_ns=2 * NS_PER_S, every=3), None),
}
