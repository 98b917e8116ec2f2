"""Judges a record while it grows: rows in, news out, each once and only when it is certain.

Divergences of the Job controller come from `RollingJudge`; those of the CronJob controller, and the
findings, from what of the record is still of use (`window.py`). Time is the record's own: `now_ns`,
which only says how long the record has been silent, is handed in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from tracekit.answers.findings.diagnosis import diagnose
from tracekit.answers.findings.leaders import LEADER
from tracekit.answers.model import Case, Family, Severity
from tracekit.answers.trace_model import Facts
from tracekit.base.collecting import collecting_rarely
from tracekit.base.kube.leases import CONTROLLER_MANAGER_LEASE
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.diff.unrecorded import as_far_as_recorded
from tracekit.check.replay.cron_history import SLOT_NAME
from tracekit.check.replay.instants import JudgedNs, RecordedNs
from tracekit.check.replay.run_context import RunContext
from tracekit.check.verdict import Judgement
from tracekit.judge.clocks import as_recorded
from tracekit.judge.engine import judge_cron_jobs
from tracekit.judge.growing import GrowingContext, GrowingTimes
from tracekit.judge.rolling import ROW_COLUMNS, SETTLED_NS, RollingJudge
from tracekit.sql.trace_model import facts_from_reader
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.reading.table_reader import in_file_order, read_held
from tracekit.versions.era import Era
from tracekit.watch.leader import LEASE_COLUMNS, Leader
from tracekit.watch.news import News, of_case, of_divergence
from tracekit.watch.steady_clock import CLOCK_COLUMNS, SteadyClock
from tracekit.watch.waiting import JOB_COLUMNS, WaitingJobs
from tracekit.watch.window import Window

#: The CronJob controller may take as long for a tick, and a rest of its sync as long again.
CRON_SETTLED_NS = 60 * NS_PER_S
#: The findings look back so far.
WINDOW_NS = 3600 * NS_PER_S
#: What happens to a controller after so long a rest happens once more.
AGAIN_NS = 60 * NS_PER_S
#: Verdicts of Jobs that are over are kept for so many times the time that they took to settle.
_JUDGED = 6
#: Fewer verdicts are not worth looking through.
_FEW_JUDGED = 1024
#: What of rows `LiveJudge.see` looks at; of notes their text, too.
SEEN_COLUMNS = tuple(sorted({*CLOCK_COLUMNS, *JOB_COLUMNS, *LEASE_COLUMNS} - {"raw"}))
#: Rules that only the whole of a record decides, or that say what is said live in another way: a
#: divergence is told as a verdict, and LEADER as the time without one.
_NOT_LIVE = (Family.DIVERGENCE, Family.RECORD)


@dataclass(slots=True)
class Counts:
    """What was said so far, for metrics."""

    divergences: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)
    missed_runs: int = 0
    rows: int = 0


class LiveJudge:
    """The news of a growing record, by the rules of one era."""

    def __init__(self, header: TraceHeader, era: Era, *, settled_ns: int = SETTLED_NS) -> None:
        self._header = header
        self._era = era
        self._settled_ns = settled_ns
        self._rolling = RollingJudge(era, settled_after_ns=settled_ns)
        self._around = Window(_around, WINDOW_NS)
        self._recent = Window(_of_jobs, 2 * settled_ns)
        #: Those of the rows that findings look at: they decide whose work a pod was.
        self._judged: list[Judgement] = []
        self._judged_limit = _FEW_JUDGED
        self._said: dict[tuple[Any, ...], int] = {}
        self._clock = SteadyClock()
        self._leader = Leader(self._clock)
        self._context, self._times = GrowingContext(), GrowingTimes()
        self._now_ns = 0
        self.waiting = WaitingJobs(self._clock)
        self.counts = Counts()

    @property
    def now_ns(self) -> int:
        """The time of the latest row."""
        return self._now_ns

    def feed(self, rows: pa.Table) -> list[News]:
        """Take in rows with all columns, in order of arrival, each once; tell what they push out.

        A record that was there before it was watched comes faster than it is judged: what its older
        rows tell is told before they are let go.
        """
        if not rows.num_rows:
            return []
        self.see(rows)
        full = self._held_in(rows)
        news = self.judge() if full else []
        for window in full:
            window.trim()
        return news

    def see(self, rows: pa.Table) -> None:
        """Note how far the record is and what waits, of rows with `SEEN_COLUMNS`.

        That is all that is looked at of one that is judged as a whole when it ends.
        """
        self.counts.rows += rows.num_rows
        self._now_ns = max(self._now_ns, pc.max(rows["recv_ns"]).as_py() or 0)
        steady = self._clock.feed(rows)
        self.waiting.feed(steady)
        self._leader.feed(steady)

    def hold(self, rows: pa.Table) -> None:
        """Take in rows that were seen, of a record that turns out not to be judged as a whole."""
        for window in self._held_in(rows):
            window.trim()

    def _held_in(self, rows: pa.Table) -> list[Window]:
        """Take in rows with all columns; the windows that are full with them."""
        self._rolling.feed(rows.select(list(ROW_COLUMNS)))
        self._context.feed(rows)
        self._times.feed(rows)
        windows = (self._around, self._recent)
        for window in windows:
            window.feed(rows)
        return [window for window in windows if window.is_full]

    def leader(self, now_ns: int) -> Iterator[News]:
        """Whether the controller manager still renews its lease; `now_ns` is the clock's."""
        for case in self._leader.lost(now_ns, self.waiting.count):
            yield self._news(case, max(case.until_ns, self._now_ns))

    @collecting_rarely()
    def judge(self, *, last: bool = False, whole: Facts | None = None) -> list[News]:
        """What has become certain since the last call, by time; if it is the last, all the rest.

        The last is that of a record that has ended: no row comes any more that could explain it.
        `whole` are the facts of all of it, where they can be had: then its verdicts and findings
        are told, for what is remembered here is only what a record that grows still needs.
        """
        if whole is not None and whole.not_judged is None:
            news = [*self._divergences(whole.judgements.divergent), *self._of_the_whole(whole)]
        else:
            news = self._of_the_rows(last=last, whole=whole)
        self._forget()
        return sorted(news, key=lambda n: (n.at_ns, n.id, n.subject))

    def _of_the_rows(self, *, last: bool, whole: Facts | None) -> list[News]:
        """What the rows that are remembered tell; the findings of the whole, where it is there."""
        around, times = self._held(self._around.table()), self._times.of(self._header)
        context = self._context.of(around, RecordedNs(self._now_ns), times)
        rolling = self._rolling
        of_jobs = rolling.close(context) if last else rolling.judgements(context)
        judgements = list(_as_recorded(of_jobs, context))
        news = list(self._divergences(judgements))
        of_cron_jobs: list[Judgement] = []
        if any(table.num_rows for table in around.batches(("seq",), streams=["cronjobs"])):
            certain_ns = rolling.now_ns - (0 if last else CRON_SETTLED_NS)
            found = judge_cron_jobs(around, self._era, context)
            of_cron_jobs = list(_as_recorded(found, context))
            news += self._divergences(
                said for said, j in zip(of_cron_jobs, found, strict=True) if j.time_ns <= certain_ns
            )
        certain_ns = self._now_ns - (0 if last else self._settled_ns)
        if whole is None:
            news += self._findings(self._facts(judgements, of_cron_jobs), certain_ns)
        else:
            news += self._of_the_whole(whole)
        return news

    def renewed(self, header: TraceHeader) -> LiveJudge:
        """One for the trace that a rotation began: it knows what was said, and how much."""
        other = LiveJudge(header, self._era, settled_ns=self._settled_ns)
        other._said, other.counts, other._leader = self._said, self.counts, self._leader
        other._clock, other.waiting = self._clock, WaitingJobs(self._clock)
        return other

    #### What there is to say ####

    def _divergences(self, judgements: Iterable[Judgement]) -> Iterator[News]:
        for judgement in judgements:
            if judgement.divergent:
                where = judgement.object
                key = (where.uid, judgement.action, judgement.verdict, judgement.resource_version,
                       judgement.subject)  # fmt: skip
                if self._is_new(key, judgement.time_ns):
                    what = (judgement.controller, judgement.action, judgement.verdict.value)
                    self.counts.divergences[what] += 1
                    news = of_divergence(judgement, self._now_ns)
                    self.counts.findings[news.id] += 1
                    yield news

    def _facts(self, judgements: list[Judgement], of_cron_jobs: list[Judgement]) -> Facts:
        """What findings look at of the Jobs of the latest rows, and of CronJobs.

        `judgements` are new; `of_cron_jobs` those of all the rows that are remembered.
        """
        table = pa.concat_tables([self._around.table(), self._recent.table()])
        reader = self._held(table)
        self._remember(judgements, table)
        coverage = self._context.coverage(self._header, self._now_ns)
        return facts_from_reader(reader, [*self._judged, *of_cron_jobs], self._era, coverage)

    def _remember(self, judgements: list[Judgement], rows: pa.Table) -> None:
        """Keep what was judged of a Job while its rows are held: findings ask how they came."""
        self._judged += judgements
        if len(self._judged) <= 2 * self._judged_limit:
            return
        since_ns = self._now_ns - _JUDGED * self._settled_ns
        jobs = zip(rows["namespace"].to_pylist(), rows["job"].to_pylist(), strict=True)
        whole = {key for key in set(jobs) if not self._cut_ns(key)}
        self._judged = [
            judgement
            for judgement in self._judged
            if judgement.time_ns >= since_ns
            or (judgement.object.namespace, judgement.object.name) in whole
        ]
        self._judged_limit = max(_FEW_JUDGED, len(self._judged))

    def _cut_ns(self, key: tuple[str, str]) -> int:
        """Until when rows of a Job are missing; 0 if none is."""
        return max(window.cut_ns(key) for window in (self._around, self._recent))

    def _findings(self, facts: Facts, certain_ns: int) -> Iterator[News]:
        for case in self._warned_of(facts):
            if case.rule.family in _NOT_LIVE or case.rule is LEADER:
                continue
            if case.from_ns <= certain_ns and self._is_whole(case):
                yield from self._case(case)

    def _of_the_whole(self, facts: Facts) -> Iterator[News]:
        """All that `tracekit diagnose` warns of; divergences are told as verdicts."""
        for case in self._warned_of(facts):
            if case.rule.family is not Family.DIVERGENCE:
                yield from self._case(case)

    def _warned_of(self, facts: Facts) -> Iterator[Case]:
        """What is worth telling, each as severe as `diagnose` says: by what follows, too."""
        self._count_ticks(facts)
        for finding in diagnose(facts):
            if finding.severity is not Severity.INFO:
                yield from (replace(case, severity=finding.severity) for case in finding.cases)

    def _count_ticks(self, facts: Facts) -> None:
        for tick in facts.ticks:
            key = ("tick", tick["cronjob_uid"], tick["due_ns"])
            if tick["outcome"] == "missed" and self._is_new(key, tick["due_ns"]):
                self.counts.missed_runs += 1

    def _is_whole(self, case: Case) -> bool:
        """Whether all is known that decides it."""
        key = (case.target.namespace, case.target.name)
        return case.target.kind != "Job" or case.from_ns >= self._cut_ns(key)

    def _case(self, case: Case) -> Iterator[News]:
        key = (case.rule.id, case.target.kind, case.target.namespace, case.target.name)
        if case.target.kind == "Controller" and case.from_ns > self._said.get(key, 0) + AGAIN_NS:
            self._said.pop(key, None)  # there is only one of it: another time is another finding
        if self._is_new(key, case.until_ns):
            yield self._news(case, self._now_ns)

    def _news(self, case: Case, reported_ns: int) -> News:
        self.counts.findings[case.rule.id] += 1
        return of_case(case, reported_ns)

    def _is_new(self, key: tuple[Any, ...], at_ns: int) -> bool:
        if key in self._said:
            self._said[key] = max(self._said[key], at_ns, self._now_ns - WINDOW_NS)
            return False
        self._said[key] = max(at_ns, self._now_ns - WINDOW_NS)
        return True

    def _forget(self) -> None:
        """What lies behind the window cannot come up again."""
        self._context.forget(self._now_ns - WINDOW_NS)
        self._times.forget(JudgedNs(self._rolling.now_ns - WINDOW_NS))
        before_ns = self._now_ns - 2 * WINDOW_NS
        for key in [key for key, at_ns in self._said.items() if at_ns < before_ns]:
            del self._said[key]

    def _held(self, table: pa.Table) -> TraceReader:
        header = replace(self._header, sealed_from=0)
        return read_held(in_file_order(table), header, Path("record"))


def _as_recorded(judgements: Iterable[Judgement], context: RunContext) -> Iterator[Judgement]:
    """Judgements, as far as the record can tell, by the recorder's clock."""
    for judgement in judgements:
        yield as_recorded(as_far_as_recorded(judgement, context, ()), context.clock)


def _equal(table: pa.Table, name: str, value: str) -> Any:
    return pc.fill_null(pc.equal(pc.cast(table[name], pa.string()), value), False)  # noqa: FBT003


def _around(rows: pa.Table) -> pa.Table:
    """What concerns the record and the process as a whole, and CronJobs with their Jobs."""
    cron = pc.and_(_equal(rows, "stream", "events"), pc.is_valid(rows["cronjob"]))
    lease = pc.and_(
        _equal(rows, "stream", "leases"), _equal(rows, "name", CONTROLLER_MANAGER_LEASE)
    )
    whole = pc.is_in(
        pc.cast(rows["stream"], pa.string()), pa.array(["cronjobs", "namespaces", "resourcequotas"])
    )
    control = pc.is_in(
        pc.cast(rows["type"], pa.string()), pa.array(["LIST_BEGIN", "LIST_END", "GAP"])
    )
    mask = pc.or_(pc.or_(_of_cron_jobs(rows), cron), pc.or_(lease, pc.or_(whole, control)))
    return rows.filter(pc.fill_null(mask, False))  # noqa: FBT003


def _of_jobs(rows: pa.Table) -> pa.Table:
    """The states of Jobs that no CronJob owns, of their pods (released ones, too), of Events."""
    state = pc.is_in(
        pc.cast(rows["type"], pa.string()), pa.array(["LIST", "ADDED", "MODIFIED", "DELETED"])
    )
    stream = pc.is_in(pc.cast(rows["stream"], pa.string()), pa.array(["jobs", "pods", "events"]))
    released = pc.and_(_equal(rows, "stream", "pods"), pc.is_null(rows["owner_uid"]))
    mine = pc.and_(pc.and_(state, stream), pc.or_(pc.is_valid(rows["job"]), released))
    others = pc.invert(_of_cron_jobs(rows))
    return rows.filter(pc.and_(pc.fill_null(mine, False), others))  # noqa: FBT003


def _of_cron_jobs(rows: pa.Table) -> Any:
    """Which are Jobs that a CronJob owns, or that have the name of one of its slots."""
    slots = pc.fill_null(
        pc.match_substring_regex(pc.cast(rows["name"], pa.string()), f"^{SLOT_NAME.pattern}$"),
        False,  # noqa: FBT003
    )
    return pc.and_(_equal(rows, "stream", "jobs"), pc.or_(pc.is_valid(rows["cronjob"]), slots))
