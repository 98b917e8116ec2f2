"""Judging a record of Jobs while it grows: rows in, as they arrive; judgements out, once certain.

    rolling = RollingJudge(era)
    for rows in batches:                        # Arrow tables, in order of arrival
        rolling.feed(rows)
        for judgement in rolling.judgements(run_context):
            ...                                 # said once, and never taken back
    rest = rolling.close(run_context)           # with what was missing at the end

The Job controller's part is judged here, and the TTL controller's; CronJobs are not. Only Jobs with
new rows are searched again, when these are certain, and those of which time alone may tell
something: when a deadline or TTL is over, and ever more rarely while nothing comes. A judgement is
certain when its write is older than `settled_after_ns` and so are the rows that could explain it
otherwise; a divergence is never said before that. An action that never came is said when what
others were given meanwhile proves it; if it comes after all, it is said to be late.

Rows are put on the clock that they are judged on by what the context of each call proves of the
recorder's; judgements lie on it. Where it turns out to have been off otherwise,
what was found is let go of, and nothing follows any more from how long anything took until then.

What is kept is the rows of the Jobs that are still there, as Arrow has them, and some hundred bytes
for each sync of the last minutes (`PAST_NS`). Of a Job at which nothing happens nothing else is
kept; one that is deleted is forgotten once all is said of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobView
from tracekit.check.diff.cross_key_timing import CrossKeyTiming
from tracekit.check.diff.lateness import KeyTiming
from tracekit.check.diff.trace import judge_groups, recheck
from tracekit.check.diff.ttl import TtlJudge, TtlOfKey, ttl_of_key
from tracekit.check.replay.feed import COLUMNS, RowGroup
from tracekit.check.replay.history import History
from tracekit.check.replay.instants import JudgedNs
from tracekit.check.replay.recorder_clock import RecorderClock
from tracekit.check.replay.run_context import Outage, RunContext
from tracekit.check.verdict import Judgement, Verdict, in_order
from tracekit.judge.clocks import table_on_clock
from tracekit.ports.ttl.controller import NoFinishTimeError, expires_at_ns, needs_cleanup
from tracekit.trace.format.schema import SORT_KEYS
from tracekit.trace.reading.groups import groups_of
from tracekit.versions.cronjob import CronJobEra
from tracekit.versions.era import Era
from tracekit.versions.job import JobRules

#: The columns that rows are fed with.
ROW_COLUMNS: Final = tuple(dict.fromkeys((*COLUMNS, *SORT_KEYS)))
#: Longer than informers lag, tokens are waited for, and a key that failed once is held back.
SETTLED_NS: Final = 30 * NS_PER_S
#: So long are syncs remembered of Jobs that rest or are gone: what they tell of the process.
PAST_NS: Final = 600 * NS_PER_S
#: Fewer rows are not worth making their tables anew.
_FEW_ROWS: Final = 32_768
#: What was found by a clock that was off by less stands: two rows may come so much closer together.
_OFF_NS: Final = NS_PER_S // 10
#: A Job at which nothing happens is looked at again after so long, then after twice as long, …
_FIRST_LOOK_NS: Final = 60 * NS_PER_S
_LAST_LOOK_NS: Final = 3600 * NS_PER_S
_NOTHING: Final = KeyTiming((), (), (), (), (), ())

Key = tuple[str, str]


@dataclass(slots=True)
class _Known:
    """What was found of the Jobs of one name when they were last searched."""

    last_ns: int = 0  # receive time of the latest row
    #: Of the first row, or judgement, that nothing was said of yet; None: there is none.
    open_ns: int | None = None
    has_new_rows: bool = False
    judgements: list[Judgement] = field(default_factory=list)  # that are not said
    said: set[tuple[object, ...]] = field(default_factory=set)
    timing: KeyTiming = _NOTHING
    ttl: TtlOfKey = field(default_factory=TtlOfKey)
    is_gone: bool = False
    #: What was until then is said, and the past of the process knows it.
    resting_since_ns: int = 0
    #: When time alone may have made a difference; None: never.
    look_ns: int | None = None

    @property
    def owes(self) -> bool:
        """Whether something is still to be done, or was not done in its time."""
        return bool(self.timing.pending) or any(timing.pending for timing in self.ttl.timings)


class RollingJudge:
    """The judgements of a growing record of Jobs, by the rules of one era."""

    def __init__(self, era: Era, *, settled_after_ns: int = SETTLED_NS) -> None:
        self._rules, self._ttl_era = JobRules.of(era), CronJobEra.of(era)
        self._settled_after_ns = settled_after_ns
        self._tables: list[pa.Table] = []
        self._known: dict[Key, _Known] = {}
        self._misnamed = _Known()  # rows may say that they are another Job's than they are
        #: Of Jobs that rest or are gone, for the Job controller and the TTL controller.
        self._past, self._past_ttl = CrossKeyTiming(), CrossKeyTiming("ttl")
        self._ttl_runs = False
        self._forgot_ns = 0
        self._interruptions: tuple[Outage, ...] = ()
        self._forgotten = 0
        self._held_rows = _FEW_ROWS
        self._now_ns = 0
        #: The recorder's: by which rows lie on the one that is judged on, and what was found does.
        self._clock = RecorderClock()
        self._found_by: RecorderClock | None = None  # None: nothing was found yet

    @property
    def now_ns(self) -> int:
        """The time of the latest row, on the clock that is judged on."""
        return self._now_ns

    @property
    def rows(self) -> int:
        """How many rows are held."""
        return sum(table.num_rows for table in self._tables)

    @property
    def searched(self) -> int:
        """Of how many Jobs it keeps more than rows."""
        return sum(1 for known in self._known.values() if known.timing is not _NOTHING)

    def feed(self, rows: pa.Table) -> None:
        """Take in rows with `ROW_COLUMNS`, in order of arrival; each only once."""
        if not rows.num_rows:
            return
        rows = table_on_clock(rows.select(list(ROW_COLUMNS)), self._clock)
        self._now_ns = max(self._now_ns, pc.max(rows["recv_ns"]).as_py() or 0)
        rows = _of_jobs(rows)
        if not rows.num_rows:
            return
        self._tables.append(rows)
        while len(self._tables) > 1 and self._tables[-2].num_rows <= 2 * self._tables[-1].num_rows:
            self._tables[-2:] = [_joined(self._tables[-2:])]
        latest = rows.group_by(["namespace", "job"]).aggregate([("recv_ns", "min_max")])
        for row in latest.to_pylist():
            namespace, job = row["namespace"], row["job"]
            if namespace is None:
                continue
            # A pod without a controller may be any Job's of its namespace.
            keys = [(namespace, job)] if job else [k for k in self._known if k[0] == namespace]
            for key in keys:
                known = self._known.setdefault(key, _Known())
                times = row["recv_ns_min_max"]
                known.last_ns, known.has_new_rows = max(known.last_ns, times["max"] or 0), True
                if known.open_ns is None:
                    known.open_ns = times["min"] or 0

    def judgements(self, run_context: RunContext) -> list[Judgement]:
        """What has become certain since the last call, by time.

        `run_context` is that of the record so far: its outages, and no end but the last row.
        """
        self._take(run_context.clock)
        context = replace(run_context, end_ns=self._now_ns)
        certain_ns = self._now_ns - self._settled_after_ns
        self._judge(context, certain_ns)
        # What came after is known, and proves nothing yet: other rows of that time may be coming.
        found = [
            judgement
            for known, judgement in self._settled(replace(context, end_ns=certain_ns))
            if judgement.time_ns <= certain_ns and _say(known, judgement)
        ]
        self._rest(certain_ns)
        self._forget(certain_ns)
        return in_order(found)

    def close(self, run_context: RunContext) -> list[Judgement]:
        """The rest, by time, with what the record ends without."""
        self._take(run_context.clock)
        self._judge(run_context, None)
        return in_order(
            judgement for known, judgement in self._settled(run_context) if _say(known, judgement)
        )

    # The recorder's clock.

    def _take(self, clock: RecorderClock) -> None:
        """Put all on the clock that is judged on by what is known of the recorder's now."""
        before, self._clock = self._clock, clock
        if not _off_ns(before, clock):
            return

        def moved_ns(at_ns: int) -> int:
            return clock.judged_ns(before.recorded_ns(JudgedNs(at_ns)))

        self._tables = [table_on_clock(table, clock, before) for table in self._tables]
        self._now_ns = moved_ns(self._now_ns)
        is_off = self._found_by is not None and _off_ns(self._found_by, clock) >= _OFF_NS
        for known in (*self._known.values(), self._misnamed):
            known.last_ns = moved_ns(known.last_ns)
            known.resting_since_ns = known.resting_since_ns and moved_ns(known.resting_since_ns)
            known.open_ns = None if known.open_ns is None else moved_ns(known.open_ns)
            known.look_ns = None if known.look_ns is None else moved_ns(known.look_ns)
            if is_off and known.timing is not _NOTHING:
                known.judgements, known.timing, known.ttl = [], _NOTHING, TtlOfKey()
                known.open_ns = known.open_ns or known.last_ns
        if is_off:
            self._found_by = clock
            self._past, self._past_ttl = CrossKeyTiming(), CrossKeyTiming("ttl")
            for past in (self._past, self._past_ttl):
                past.forget(self._now_ns)
            self._forgot_ns = self._now_ns

    # Searching.

    def _judge(self, run_context: RunContext, certain_ns: int | None) -> None:
        """Search what has something to say by then: all that is open, without a time.

        A Job whose rows are too young to be certain is not searched for nothing.
        """
        # A new process has another queue: since when it owes something is found anew.
        renewed = run_context.interruptions != self._interruptions
        self._interruptions = run_context.interruptions
        wanted = {
            key
            for key, known in self._known.items()
            if (known.open_ns is not None and (certain_ns is None or known.open_ns <= certain_ns))
            or (known.look_ns is not None and (certain_ns is None or known.look_ns <= self._now_ns))
            or ((renewed or known.has_new_rows) and known.owes)
        }
        if not wanted:
            return
        self._found_by = self._found_by or self._clock
        context, ttl_context = run_context.watching("jobs", "pods"), run_context.watching("jobs")
        for judged in judge_groups(self._groups(wanted), self._rules, context, wanted):
            history = judged.replay.history
            known = self._known[history.namespace, history.name]
            known.judgements = [
                judgement
                for judgement in judged.judgements
                if judgement.time_ns > known.resting_since_ns
                and _identity(judgement) not in known.said
            ]
            known.timing = _since(judged.timing, known.resting_since_ns)
            known.ttl = _ttl_since(ttl_of_key(history, ttl_context), known.resting_since_ns)
            known.is_gone = bool(history.jobs) and history.jobs[-1].type == "DELETED"
            known.look_ns = _next_look(history, known.last_ns, self._now_ns)
            known.open_ns, known.has_new_rows = None, False
            if certain_ns is not None and known.last_ns > certain_ns:
                later_ns = [j.time_ns for j in known.judgements if j.time_ns > certain_ns]
                known.open_ns = min(later_ns, default=known.last_ns)

    def _groups(self, wanted: Collection[Key]) -> Iterator[RowGroup]:
        """The rows of some Jobs."""
        tables = [part for table in self._tables if (part := _rows_of(table, wanted)).num_rows]
        yield from groups_of(tables, COLUMNS)

    def _settled(self, run_context: RunContext) -> Iterator[tuple[_Known, Judgement]]:
        """What was not said yet, with what the process as a whole tells of it."""
        cross_key = self._past.copy()
        ttl = TtlJudge(
            self._ttl_era, run_context.watching("jobs"), cross_key.beside("ttl", self._past_ttl)
        )
        if self._ttl_runs:
            ttl.take(TtlOfKey(runs=True))
        for known in self._known.values():
            cross_key.add(known.timing)
            ttl.take(known.ttl)
        context = run_context.watching("jobs", "pods")
        found = cross_key.settled(context)
        found = recheck(found, lambda: self._groups(found.contradicted), self._rules, context)
        for known in self._known.values():
            for judgement in known.judgements:
                yield known, found.of(judgement)
        for judgement in (*found.missing, *ttl.report()):
            where = judgement.object
            yield self._known.get((where.namespace, where.name), self._misnamed), judgement

    # Forgetting.

    def _rest(self, before_ns: int) -> None:
        """Let go of what was found of Jobs at which nothing has happened since."""
        for known in self._known.values():
            if known.last_ns >= before_ns or known.timing is _NOTHING:
                continue
            if known.open_ns is not None or known.owes:
                continue
            self._take_over(known)
            known.judgements, known.timing, known.ttl = [], _NOTHING, TtlOfKey()
            if known.resting_since_ns < known.last_ns:  # else time alone had it searched again
                known.said = set()
                known.resting_since_ns = known.last_ns

    def _take_over(self, known: _Known) -> None:
        """What a Job tells of the process, when nothing has to be said of it any more."""
        self._past.add(_past(known.timing))
        for timing in known.ttl.timings:
            self._past_ttl.add(_past(timing))
        self._ttl_runs = self._ttl_runs or known.ttl.runs

    def _forget(self, certain_ns: int) -> None:
        """Let go of Jobs that are deleted and of which all is said."""
        over = [
            k for k, known in self._known.items() if known.is_gone and known.last_ns < certain_ns
        ]
        for key in over:
            self._take_over(self._known.pop(key))
        self._forgotten += len(over)
        if self._forgotten and self.rows > 2 * self._held_rows:
            self._tables = [_living(_joined(self._tables), self._known, certain_ns)]
            self._held_rows = max(_FEW_ROWS, self._tables[0].num_rows)
            self._forgotten = 0
        if certain_ns - self._forgot_ns > 2 * PAST_NS:
            self._forgot_ns = certain_ns - PAST_NS
            self._past.forget(self._forgot_ns)
            self._past_ttl.forget(self._forgot_ns)


def _off_ns(before: RecorderClock, clock: RecorderClock) -> int:
    """The most by which two offsets of a recorder's clock differ at any row."""
    seqs = {epoch.from_seq for epoch in (*before.epochs, *clock.epochs)}
    return max((abs(before.ahead_at(seq) - clock.ahead_at(seq)) for seq in seqs), default=0)


def _say(known: _Known, judgement: Judgement) -> bool:
    """Whether this is said for the first time."""
    identity = _identity(judgement)
    if identity in known.said:
        return False
    known.said.add(identity)
    return True


def _identity(judgement: Judgement) -> tuple[object, ...]:
    """By what a judgement is known again when its Job is searched a second time."""
    where = judgement.object
    return (
        where.uid,
        judgement.action,
        judgement.resource_version,
        judgement.subject,
        judgement.verdict is Verdict.MISSING,
    )


def _next_look(history: History, last_ns: int, now_ns: int) -> int | None:
    """When time alone, without a row, may tell something of a Job; None: never."""
    if not history.jobs or history.jobs[-1].type == "DELETED":
        return None
    job = history.jobs[-1].view
    if job.status.finished is not None:
        expires_ns = _expires_ns(job)
        return expires_ns if expires_ns is not None and expires_ns > now_ns else None
    quiet_ns = max(_FIRST_LOOK_NS, now_ns - last_ns)
    looks_ns = [min(last_ns + 2 * quiet_ns, now_ns + _LAST_LOOK_NS)]
    deadline_s, start_ns = job.spec.active_deadline_s, job.status.start_ns
    if deadline_s is not None and start_ns is not None:
        looks_ns.append(start_ns + deadline_s * NS_PER_S)
    return min(at_ns for at_ns in looks_ns if at_ns > now_ns)


def _expires_ns(job: JobView) -> int | None:
    try:
        return expires_at_ns(job) if needs_cleanup(job) else None
    except NoFinishTimeError:
        return None


def _since(timing: KeyTiming, from_ns: int) -> KeyTiming:
    """What a key tells of the time after `from_ns`: the rest was taken over."""
    if not from_ns:
        return timing
    return KeyTiming(
        tuple(service for service in timing.services if service.served_ns > from_ns),
        tuple(at_ns for at_ns in timing.calls_ns if at_ns > from_ns),
        tuple(early for early in timing.early_candidates if early.at_ns > from_ns),
        timing.pending,
        tuple(seen for seen in timing.seen if seen.at_ns > from_ns),
        tuple(behind for behind in timing.behind if behind.at_ns > from_ns),
        tuple(at_ns for at_ns in timing.serial_ns if at_ns > from_ns),
    )


def _ttl_since(found: TtlOfKey, from_ns: int) -> TtlOfKey:
    return TtlOfKey(
        [judgement for judgement in found.judgements if judgement.time_ns > from_ns],
        [judgement for judgement in found.stray if judgement.time_ns > from_ns],
        [_since(timing, from_ns) for timing in found.timings],
        found.runs,
    )


def _past(timing: KeyTiming) -> KeyTiming:
    """What a key tells of the process, with nothing to be said of the key itself."""
    services = tuple(replace(service, judged=False) for service in timing.services)
    return replace(timing, services=services, early_candidates=(), pending=(), behind=())


def _of_jobs(table: pa.Table) -> pa.Table:
    """The rows that have to do with Jobs: those of a Job, and pods that no controller owns."""
    pods = pc.fill_null(pc.equal(pc.cast(table["stream"], pa.string()), "pods"), False)  # noqa: FBT003
    mine = pc.or_(pc.is_valid(table["job"]), pods)
    return table.filter(pc.and_(mine, pc.is_valid(table["namespace"])))


def _rows_of(table: pa.Table, keys: Collection[Key]) -> pa.Table:
    """The rows of some Jobs, and the pods of their namespaces that belong to no Job."""
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


def _living(table: pa.Table, keys: Collection[Key], before_ns: int) -> pa.Table:
    """The rows of some Jobs, and the pods of no Job that are there, or were not long before."""
    table = _rows_of(table, keys)
    gone = pc.and_(
        pc.equal(pc.cast(table["type"], pa.string()), "DELETED"),
        pc.less(table["recv_ns"], before_ns),
    )
    uids = table.filter(pc.and_(pc.is_null(table["job"]), pc.fill_null(gone, False)))["uid"]  # noqa: FBT003
    over = pc.and_(
        pc.is_null(table["job"]), pc.is_in(table["uid"], value_set=uids.combine_chunks())
    )
    return table.filter(pc.invert(over))


def _joined(tables: Iterable[pa.Table]) -> pa.Table:
    return pa.concat_tables(list(tables)).unify_dictionaries().combine_chunks()
