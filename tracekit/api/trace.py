"""A trace as Python has it: ask in SQL, diagnose, replay, explain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from tracekit.answers.event_index import is_pod_of
from tracekit.api.results import Diagnosis, Replay, html_table
from tracekit.base.coverage import Coverage
from tracekit.base.errors import TraceFormatError, UsageError
from tracekit.base.time_input import TimeRange, time_range
from tracekit.check.verdict import Judgement
from tracekit.judge.fact_cache import cached_coverage, cached_fact
from tracekit.judge.judged import Asked, Judge, open_under
from tracekit.report.narrative import Concluded, Narrative, narrative_of_job
from tracekit.report.narrative_events import narrative_of_events
from tracekit.report.narrative_logs import add_container_logs
from tracekit.report.narrative_manager import LoggedSync, add_logged_syncs
from tracekit.report.narrative_others import add_judgements, add_restarts, narrative_of_cronjob
from tracekit.trace.format.model import STATELESS, TraceHeader
from tracekit.trace.reading.objects import events_of_pod
from tracekit.trace.stores.place import local_trace
from tracekit.versions.cronjob import CronJobEra
from tracekit.versions.era import NEWEST, Era
from tracekit.versions.overrides import AskedRules
from tracekit.versions.texts import parse_clock_offset, parse_controller_flags

if TYPE_CHECKING:
    import duckdb

    from tracekit.answers.happening import Happening
    from tracekit.sql.compared import Compared
    from tracekit.sql.edits import Edit
    from tracekit.sql.session import Session


class Trace:
    """One trace, in a directory or in object storage; `with` closes it.

    >>> with tracekit.open("demo/real") as trace:
    ...     trace.sql("SELECT count(*) FROM jobs WHERE outcome = 'Failed'").fetchall()
    [(15,)]
    """

    def __init__(
        self,
        path: str | Path,
        *,
        controller_flags: str | Sequence[str] | None = None,
        clock_offset: float | None = None,
        before_judging: Callable[[int], None] | None = None,
    ) -> None:
        """`controller_flags` stand in for those of the header: "--kube-api-qps=100".

        `clock_offset`: how far the recorder's clock was ahead of the one that is judged on, in
        seconds; None: as the record tells.

        `before_judging` is called with the number of observations when all are judged. That is done
        once: verdicts are kept on this machine, so that the next answer takes no time.
        """
        self._flags = None if controller_flags is None else parse_controller_flags(controller_flags)
        self._name = str(path)
        self._before_judging = before_judging
        #: Its directory; of a URL, that of the copy on this machine.
        self.path = local_trace(path)
        self._offset_ns = None if clock_offset is None else parse_clock_offset(clock_offset)
        said = AskedRules(controller_flags=self._flags, clock_offset_ns=self._offset_ns)
        self._reader = open_under(said, self.path, around_damage=True)
        self._judges: dict[AskedRules, Judge] = {}
        self._sessions: dict[AskedRules, Session] = {}

    def __repr__(self) -> str:
        return f"tracekit.open({self._name!r})"

    def _repr_html_(self) -> str:
        version = self.header.kubernetes_version or "unknown"
        facts = [("Kubernetes", version), ("rows", f"{self._reader.rows:,}")]
        facts += [("problem", problem) for problem in self._reader.problems]
        return html_table(f"Trace {self._name}", ("", ""), facts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give files and memory free; what was fetched stays."""
        while self._sessions:
            self._sessions.popitem()[1].close()

    @property
    def header(self) -> TraceHeader:
        """Kubernetes version, gates, flags and scope, as far as they are known."""
        return self._reader.header

    @property
    def coverage(self) -> Coverage:
        """Where and when each stream was seen: only there and then absence tells anything."""
        return cached_coverage(self._reader)

    @property
    def problems(self) -> list[str]:
        """Sentences about what of the trace cannot be read."""
        # A session has more to say only if it was asked.
        asked = [text for session in self._sessions.values() for text in session.problems]
        return list(dict.fromkeys([*self._reader.problems, *asked]))

    @property
    def warnings(self) -> list[str]:
        """Sentences about the rules that it was judged by, once it was."""
        eras = [judge.era for judge in self._judges.values()]
        by_rules = [text for era in eras for text in era.warnings]
        asked = [text for session in self._sessions.values() for text in session.warnings]
        return list(dict.fromkeys([*by_rules, *asked]))

    @property
    def is_damaged(self) -> bool:
        """Whether any of it cannot be believed, or its end is lost: it gets no verdicts then."""
        sessions = self._sessions.values()
        return self._reader.is_damaged or any(session.is_damaged for session in sessions)

    def _session(self, rules: AskedRules | None = None) -> Session:
        """The views, with what follows from rules by these; None: by the trace's own."""
        from tracekit.sql.session import Session  # noqa: PLC0415 - with DuckDB, slow to import

        rules = rules or self._asked(None, None, None)
        if rules not in self._sessions:
            self._sessions[rules] = Session(
                [self.path], rules=rules, before_judging=self._before_judging
            )
        return self._sessions[rules]

    def _asked(
        self, version: str | None, gates: Mapping[str, bool] | None, process_zone: str | None
    ) -> AskedRules:
        return AskedRules.of(version, gates, process_zone, self._flags, self._offset_ns)

    def sql(self, query: str) -> duckdb.DuckDBPyRelation:
        """A query over the views of docs/sql.md; `.to_arrow_table()`, `.df()`, `.pl()` fetch it.

        >>> trace.sql("SELECT outcome, count(*) FROM jobs GROUP BY ALL ORDER BY ALL").fetchall()[0]
        ('Complete', 43)
        """
        return self._session().sql(query)

    def jobs(self, namespace: str | None = None) -> pa.Table:
        """The view `jobs`, ordered by creation; a UsageError for a namespace that is not there.

        >>> trace.jobs("t-fixed-completions").column("outcome").to_pylist()
        ['Complete', 'Complete', 'Complete']
        """
        rows = self._session().own_table("SELECT * FROM jobs ORDER BY created_at, namespace, job")
        if namespace is None:
            return rows
        self._session().objects.check_namespace(namespace)
        return rows.filter(pc.equal(rows["namespace"], namespace))

    def diagnose(
        self,
        *,
        namespace: str | None = None,
        selector: str | None = None,
        since: str | float | None = None,
        from_: str | int | None = None,
        to: str | int | None = None,
        version: str | None = None,
        feature_gates: Mapping[str, bool] | None = None,
        process_zone: str | None = None,
    ) -> Diagnosis:
        """What went wrong, worst first (docs/findings.md).

        >>> trace.diagnose(namespace="t-backoff-limit")[0].id
        'TK407'

        Args:
            namespace: Only this namespace.
            selector: Only objects with these labels, as kubectl's `-l` takes it: "app=shop".
            since: Only the end of the trace, so long: "2h", or seconds.
            from_: Only from then on: RFC 3339, "22:43", "-10m" (before the end), or ns.
            to: Only until then.
            version: Kubernetes version whose rules apply, instead of the trace's own.
            feature_gates: Gates that differ from that version's defaults.
            process_zone: Time zone of the controller manager, for schedules without one.

        Raises:
            UsageError: A time or the selector cannot be read, or no Job is in the namespace.
        """
        from tracekit.answers.findings.diagnosis import Wanted, wanted_selector  # noqa: PLC0415
        from tracekit.sql.findings import findings_of  # noqa: PLC0415 - with DuckDB

        session = self._session(self._asked(version, feature_gates, process_zone))
        if namespace is not None:
            session.objects.check_namespace(namespace)
        wanted = Wanted(
            namespace,
            wanted_selector(selector),
            time_range(session.end_ns, since=since, from_=from_, to=to),
        )
        return Diagnosis(findings_of(session, wanted), self._name, self.header.kubernetes_version)

    def replay(
        self,
        version: str | None = None,
        *,
        feature_gates: Mapping[str, bool] | None = None,
        process_zone: str | None = None,
        namespace: str | None = None,
        job: str | None = None,
        controllers: Sequence[str] | None = None,
        min_actions: int = 0,
        since: str | float | None = None,
        from_: str | int | None = None,
        to: str | int | None = None,
        search_all: bool = False,
    ) -> Replay:
        """Run the ported controllers over the trace and judge what was observed.

        The trace is judged as a whole, once; the arguments choose what is shown of it.

        >>> trace.replay(job="t-fixed-completions/three")
        <Replay by the rules of v1.36.3: 17 actions explained, no divergence>

        Args:
            version: Kubernetes version whose rules apply, instead of the trace's own.
            feature_gates: Gates that differ from that version's defaults.
            process_zone: Time zone of the controller manager, for schedules without one.
            namespace: Only this namespace.
            job: Only this Job or CronJob, as "namespace/name".
            controllers: Only these: "job", "cronjob", "ttl".
            min_actions: How many actions there must be to judge.
            since: Only the end of the trace, so long: "2h", or seconds.
            from_: Only from then on: RFC 3339, "22:43", "-10m" (before the end), or ns.
            to: Only until then.
            search_all: Search each Job to its bound, also where most contradict these rules.

        Raises:
            UsageError: What is asked for is not in the trace, or is too little.
            TraceFormatError: The trace has lost a part.
        """
        rules = self._asked(version, feature_gates, process_zone)
        judge = self._judge(replace(rules, search_all=search_all))
        times = time_range(
            lambda: judge.run_context.recorded_end_ns, since=since, from_=from_, to=to
        )
        asked = Asked(namespace, job, controllers, times, min_actions)
        self._require_whole()
        report = judge.report(asked)
        self._require_whole()
        return Replay(str(judge.era.version), report)

    def _require_whole(self) -> None:
        """Judge nothing by a record that cannot be believed; rows missing between are a gap."""
        if self.is_damaged:
            raise TraceFormatError(f"{self.problems[0]}; until then it gets no verdicts")

    def explain(
        self,
        key: str,
        *,
        namespace: str | None = None,
        at: str | int | None = None,
        since: str | float | None = None,
        from_: str | int | None = None,
        to: str | int | None = None,
        version: str | None = None,
        feature_gates: Mapping[str, bool] | None = None,
        process_zone: str | None = None,
        search_all: bool = False,
    ) -> Narrative:
        """The step-by-step account of a Job or CronJob, or of a pod of which Events alone tell.

        Its verdicts are those of `replay`: the whole trace is judged for it, once.

        >>> trace.explain("three").opening
        'Complete after 5 s: 3 pods succeeded.'

        Args:
            key: "namespace/name", or the name alone where it is unique; a pod's name is its Job.
            namespace: Where to look for a name alone.
            at: The same as `to`.
            since: Only the end of the trace, so long: "2h", or seconds.
            from_: Only from then on: RFC 3339, "22:43", "-10m" (before the end), or ns.
            to: Only what happened by then.
            version: Kubernetes version whose rules apply, instead of the trace's own.
            feature_gates: Gates that differ from that version's defaults.
            process_zone: Time zone of the controller manager, for schedules without one.
            search_all: Search each Job to its bound, also where most contradict these rules.

        Raises:
            UsageError: The trace has no such object, or the time cannot be read.
        """
        rules = self._asked(version, feature_gates, process_zone)
        rules = replace(rules, search_all=search_all)
        until = to if at is None else at
        if (why := self.header.scope.get(STATELESS)) is not None:
            from tracekit.api.shown import account_of_shown  # noqa: PLC0415 - with DuckDB

            return account_of_shown(
                self._session(rules), key, namespace, self._name, why,
                since=since, from_=from_, to=until,
            )  # fmt: skip
        try:
            judge = self._judge(rules)
        except UsageError:
            if version is not None or not self._has_events_alone():
                raise
            rules = replace(rules, kubernetes_version=str(NEWEST))  # they judge nothing there
            judge = self._judge(rules)
        end_ns = judge.run_context.recorded_end_ns
        times = time_range(end_ns, since=since, from_=from_, to=until)
        if times.until_ns is not None and times.until_ns >= end_ns:
            times = TimeRange(times.from_ns, None)  # nothing of the record lies behind it
        narrative = self._account(key, namespace, judge, rules)
        if times:
            narrative = narrative.within(times)
        if times.until_ns is None:
            begins = self._concluded(narrative, judge, rules, is_whole=not times)
            narrative.opening, narrative.finding_lines, narrative.findings = begins
        if self.problems:
            lost = (
                "A part of the trace is lost: what it held counts here as never done, so take no "
                "word on the rules from this account."
            )
            narrative.closing = f"{narrative.closing} {lost}".strip()
        return narrative

    def _account(
        self, key: str, namespace: str | None, judge: Judge, rules: AskedRules
    ) -> Narrative:
        """The account of a Job or CronJob, or of a pod of which the trace has Events alone."""
        try:
            return self._narrative(*judge.objects.key(key, namespace), judge, rules)
        except UsageError:
            events = events_of_pod(self._reader, key, namespace)
            if not events:
                raise
        space, name = events[0]["namespace"] or "", events[0]["involved_name"]
        jobs = (job for job in judge.objects.jobs if job[0] == space and is_pod_of(job[1], name))
        if (job := next(jobs, None)) is not None:
            return self._narrative(*job, judge, rules)
        return narrative_of_events(space, name, events)

    def _has_events_alone(self) -> bool:
        streams = {summary.stream for summary in self._reader.streams() if summary.rows}
        return not streams & {"jobs", "cronjobs", "pods"}

    def timeline(
        self,
        key: str | None = None,
        *,
        namespace: str | None = None,
        since: str | float | None = None,
        from_: str | int | None = None,
        to: str | int | None = None,
    ) -> list[Happening]:
        """What happened between two times, in order, as `tracekit timeline` prints it.

        >>> trace.timeline("three")[0].what
        'created'

        Args:
            key: Only what is about this Job or CronJob, its Jobs and pods.
            namespace: Only this namespace, or where to look for a name alone.
            since: Only the end of the trace, so long: "2h", or seconds.
            from_: Only from then on: RFC 3339, "22:43", "-10m" (before the end), or ns.
            to: Only until then.

        Raises:
            UsageError: The trace has no such object, or the time cannot be read.
        """
        from tracekit.sql.timeline import timeline_of  # noqa: PLC0415 - with DuckDB

        session = self._session()
        wanted = session.objects.key(key, namespace) if key is not None else None
        times = time_range(lambda: session.end_ns, since=since, from_=from_, to=to)
        found = timeline_of(session, times, namespace=namespace, key=wanted)
        return sorted(found, key=lambda one: (one.at_ns, one.kind, one.namespace, one.name))

    def who(
        self, name: str | None = None, *, key: str | None = None, namespace: str | None = None
    ) -> list[Edit]:
        """Who changed what, field by field, in order of time, as `tracekit who` prints it.

        >>> {edit.verb for edit in trace.who("job-controller", key="three")}
        {'update/status'}

        Args:
            name: A user, a controller or a field manager; None: all of them.
            key: Only writes to this object: "namespace/name", "name" or "cronjob/name".
            namespace: Only this namespace, or where to look for a name alone.

        Raises:
            UsageError: The trace has no such object.
        """
        from tracekit.sql.edits import edits_of, matching, named_object  # noqa: PLC0415 - with DuckDB

        session = self._session()
        space, own, stream = (namespace, None, None)
        if key is not None:
            space, own, stream = named_object(session, key, namespace)
        found = edits_of(session, namespace=space, name=own, stream=stream)
        wanted = [edit for edit in found if name is None or matching(name, edit)]
        return sorted(wanted, key=lambda edit: (edit.at_ns or 0, edit.resource_version or 0))

    def compare(self, first: str, second: str | None = None) -> Compared:
        """Two Jobs side by side, or the good and the bad run of a CronJob.

        >>> [fact.name for fact in trace.compare("three", "wide").facts][:2]
        ['outcome', 'reason']

        Args:
            first: A Job, or a CronJob where there is no second one.
            second: A Job.

        Raises:
            UsageError: The trace has no such Job, or no such runs.
        """
        from tracekit.sql.compared import compared, compared_runs  # noqa: PLC0415 - with DuckDB

        session = self._session()
        key = session.objects.key(first)
        if second is not None:
            return compared(session, key, session.objects.key(second))
        return compared_runs(session, key)

    def _concluded(
        self, narrative: Narrative, judge: Judge, rules: AskedRules, *, is_whole: bool
    ) -> Concluded:
        """What came of it and what `diagnose` says of it; of a whole account it is kept."""
        place = (narrative.kind, narrative.namespace, narrative.name)

        def made() -> Concluded:
            from tracekit.api.concluding import concluded  # noqa: PLC0415 - with DuckDB, and kept

            return concluded(self._name, self._reader, narrative, judge, rules, self._session)

        if not is_whole:
            return made()
        return cached_fact(
            self._reader.snapshot, "concluded", Concluded, made,
            rules=rules, about=(*place, self._name),
        )  # fmt: skip

    def _narrative(self, namespace: str, name: str, judge: Judge, rules: AskedRules) -> Narrative:
        judged = judge.job(namespace, name) if (namespace, name) in judge.objects.jobs else None
        if judged is not None:
            about = judge.about("Job", namespace, name)
            narrative = narrative_of_job(judged, about, self.coverage)
            add_container_logs(narrative, self._logs(namespace, name))
            add_logged_syncs(narrative, self._syncs("jobs", namespace, name))
            others = [judgement for judgement in about if judgement.controller != "job"]
        elif (namespace, name) in judge.objects.cronjobs:
            others = judge.about("CronJob", namespace, name)
            narrative = self._cronjob(namespace, name, others, self._session(rules), judge.era)
            deleted = {j.resource_version for j in others if j.action == "job-delete"}
            of_ttl = judge.of("ttl", namespace) if deleted else ()
            others = [*others, *(j for j in of_ttl if j.resource_version in deleted)]
            add_logged_syncs(narrative, self._syncs("cronjobs", namespace, name))
        else:
            raise UsageError(
                f"of the Job {namespace}/{name} the trace has only Events: there is nothing to "
                "explain"
            )
        add_judgements(narrative, others)
        add_restarts(narrative, judge.run_context.recorded_restarts)
        return narrative

    def _logs(self, namespace: str, job: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """What containers of a Job's pods had said, as far as it was recorded."""
        table = self._reader.table(
            ("recv_ns", "raw"), streams=["logs"], namespace=namespace, job=job
        )
        for at_ns, raw in zip(table["recv_ns"].to_pylist(), table["raw"].to_pylist(), strict=True):
            yield at_ns or 0, orjson.loads(raw)

    def _syncs(self, stream: str, namespace: str, name: str) -> Iterator[LoggedSync]:
        """The syncs of an object by the controller manager's own log, if the trace has it."""
        columns = ("recv_ns", "not_before_ns", "verb", "name", "message")
        table = self._reader.table(columns, streams=[stream], namespace=namespace, types=["CALL"])
        for ended_ns, began_ns, verb, of, message in zip(*table.to_pydict().values(), strict=True):
            if of == name and verb in ("sync", "error"):
                yield LoggedSync(ended_ns or 0, began_ns, message or "")

    def _cronjob(
        self, namespace: str, name: str, about: list[Judgement], session: Session, era: Era
    ) -> Narrative:
        from tracekit.sql.edits import revisions_with_writers  # noqa: PLC0415 - with DuckDB

        query = (
            "SELECT epoch_ns(due_at) AS due_ns, outcome, policy, job, schedule, why "
            "FROM cron_ticks WHERE namespace = $namespace AND cronjob = $name ORDER BY due_at"
        )
        session.compute("cron_ticks")
        rows = session.rows(query, namespace=namespace, name=name)
        revisions = revisions_with_writers(session, "cronjobs", namespace, name)
        return narrative_of_cronjob(
            namespace, name, rows, revisions, about,
            generation=CronJobEra.of(era).generation, process_zone=era.process_zone,
        )  # fmt: skip

    def _judge(self, rules: AskedRules) -> Judge:
        """The judge by these rules; a trace that was judged is not judged again."""
        if rules not in self._judges:
            self._judges[rules] = Judge.under(rules, self._reader, self._before_judging)
        return self._judges[rules]
