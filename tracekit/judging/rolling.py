"""Judging a record of Jobs while it grows: rows in, as they arrive; judgements out, once certain.

    rolling = RollingJudge(rules)
    for rows in batches:                        # Arrow tables, in order of arrival
        rolling.feed(rows)
        for judgement in rolling.judgements(run_context):
            ...                                 # said once, and never taken back
    rest = rolling.close(run_context)           # with what was missing at the end

Only Jobs with new rows are searched again. A judgement is certain when its write is older than
`settled_after_ns` and so are the rows that could explain it otherwise; a divergence is never said
before that. What is kept is the rows of the Jobs that are still there, as Arrow has them, and some
hundred bytes for each sync of the last hour; a Job that is deleted is forgotten once all is said of
it. CronJobs and TTLs are not judged here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from tracekit.diff.judge import KeyJudgement
from tracekit.diff.sweep import Settled, Sweep
from tracekit.diff.trace import in_order, judge_groups
from tracekit.eras.job import JobRules
from tracekit.kube.timestamps import NS_PER_S
from tracekit.replay.feed import COLUMNS
from tracekit.replay.run_context import RunContext
from tracekit.trace.format.schema import SORT_KEYS
from tracekit.trace.reading.groups import groups_of
from tracekit.verdict import Judgement

#: The columns that rows are fed with.
ROW_COLUMNS: Final = tuple(dict.fromkeys((*COLUMNS, *SORT_KEYS)))
#: Longer than informers lag, tokens are waited for, and a key that failed once is held back.
SETTLED_NS: Final = 30 * NS_PER_S
#: So long are the syncs of Jobs remembered that are forgotten: what they tell of the process.
PAST_NS: Final = 3600 * NS_PER_S
#: Fewer rows, or syncs, are not worth making their tables anew.
_FEW_ROWS: Final = 32_768
_FEW_SYNCS: Final = 10_000

Key = tuple[str, str]


class RollingJudge:
    """The judgements of a growing record of Jobs, by the rules of one era."""

    def __init__(self, rules: JobRules, *, settled_after_ns: int = SETTLED_NS) -> None:
        self._rules = rules
        self._settled_after_ns = settled_after_ns
        self._tables: list[pa.Table] = []
        self._dirty: set[Key] = set()
        self._known: dict[Key, KeyJudgement] = {}
        self._said: dict[Key, set[tuple[object, ...]]] = {}
        self._last_ns: dict[Key, int] = {}
        self._gone: set[Key] = set()
        self._past = Sweep()  # of the Jobs that are forgotten
        self._forgotten = 0
        self._held_rows = _FEW_ROWS
        self._past_syncs = _FEW_SYNCS
        self._now_ns = 0

    def feed(self, rows: pa.Table) -> None:
        """Take in rows with `ROW_COLUMNS`, in order of arrival; each only once."""
        if not rows.num_rows:
            return
        self._tables.append(rows.select(list(ROW_COLUMNS)))
        self._now_ns = max(self._now_ns, pc.max(rows["recv_ns"]).as_py() or 0)
        latest = rows.group_by(["namespace", "job"]).aggregate([("recv_ns", "max")])
        for row in latest.to_pylist():
            namespace, job = row["namespace"], row["job"]
            if namespace is None:
                continue
            # A pod without a controller may be any Job's of its namespace.
            keys = [(namespace, job)] if job else [k for k in self._known if k[0] == namespace]
            for key in keys:
                self._dirty.add(key)
                self._last_ns[key] = max(self._last_ns.get(key, 0), row["recv_ns_max"] or 0)

    def judgements(self, run_context: RunContext) -> list[Judgement]:
        """What has become certain since the last call, by time.

        `run_context` is that of the record so far: its outages, and no end but the last row.
        """
        now_ns = self._now_ns
        self._judge(replace(run_context, end_ns=now_ns))
        certain_ns = now_ns - self._settled_after_ns
        settled = self._sweep().settled(run_context)
        found = [j for j in self._new(settled) if j.time_ns <= certain_ns]
        for judgement in found:
            self._say(judgement)
        self._forget(certain_ns)
        return in_order(found)

    def close(self, run_context: RunContext) -> list[Judgement]:
        """The rest, by time, with what the record ends without."""
        self._judge(run_context)
        settled = self._sweep().settled(run_context)
        return in_order([*self._new(settled), *settled.missing])

    def _judge(self, run_context: RunContext) -> None:
        """Search again what has new rows, and what was waiting for time to pass."""
        waiting_ns = self._now_ns - 2 * self._settled_after_ns
        wanted = self._dirty | {k for k, at_ns in self._last_ns.items() if at_ns >= waiting_ns}
        if not wanted:
            return
        tables = [part for table in self._tables if (part := _rows_of(table, wanted)).num_rows]
        for judged in judge_groups(groups_of(tables, COLUMNS), self._rules, run_context, wanted):
            history = judged.replay.history
            key = (history.namespace, history.name)
            self._known[key] = judged
            if history.jobs and history.jobs[-1].type == "DELETED":
                self._gone.add(key)
            else:
                self._gone.discard(key)
        self._dirty.clear()

    def _sweep(self) -> Sweep:
        sweep = self._past.copy()
        for judged in self._known.values():
            sweep.add(judged.timing)
        return sweep

    def _new(self, found: Settled) -> Iterator[Judgement]:
        """What was not said yet, with what the process as a whole tells of it."""
        for key, judged in self._known.items():
            said = self._said.get(key, set())
            for judgement in judged.judgements:
                if _identity(judgement) not in said:
                    yield found.of(judgement)

    def _say(self, judgement: Judgement) -> None:
        key = (judgement.object.namespace, judgement.object.name)
        self._said.setdefault(key, set()).add(_identity(judgement))

    def _forget(self, certain_ns: int) -> None:
        """Let go of Jobs that are deleted and of which all is said."""
        over = [key for key in self._gone if self._last_ns.get(key, 0) < certain_ns]
        for key in over:
            self._past.add(self._known.pop(key).timing)
            self._said.pop(key, None)
            self._last_ns.pop(key, None)
            self._gone.discard(key)
        self._forgotten += len(over)
        if self._forgotten and sum(table.num_rows for table in self._tables) > 2 * self._held_rows:
            self._tables = [_rows_of(pa.concat_tables(self._tables), frozenset(self._last_ns))]
            self._held_rows = max(_FEW_ROWS, self._tables[0].num_rows)
            self._forgotten = 0
        if len(self._past) > 2 * self._past_syncs:
            self._past.forget(certain_ns - PAST_NS)
            self._past_syncs = max(_FEW_SYNCS, len(self._past))


def _identity(judgement: Judgement) -> tuple[object, ...]:
    """By what a judgement is known again when its Job is searched a second time."""
    where = judgement.object
    return where.uid, judgement.action, judgement.resource_version, judgement.subject


def _rows_of(table: pa.Table, keys: Collection[Key]) -> pa.Table:
    """The rows of some Jobs, and those of their namespaces that belong to no Job."""
    texts = sorted(f"{namespace}/{name}" for namespace, name in keys)
    spaces = sorted({namespace for namespace, _ in keys})
    own = pc.is_in(
        pc.binary_join_element_wise(table["namespace"], table["job"], "/"),
        value_set=pa.array(texts, pa.string()),
    )
    shared = pc.and_(
        pc.is_null(table["job"]),
        pc.is_in(table["namespace"], value_set=pa.array(spaces, pa.string())),
    )
    return table.filter(pc.or_(own, shared))
