"""The Python API: one object per trace.

trace = tracekit.open("run.trace")
trace.sql("SELECT job, reason FROM jobs WHERE outcome = 'Failed'").df()
trace.replay().divergences
print(trace.explain("shop/import").text())
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tracekit.diff.trace import DiffReport
from tracekit.errors import TraceFormatError, UsageError
from tracekit.judging.judged import Asked, Judge, resolve_era
from tracekit.kube.timestamps import parse_rfc3339
from tracekit.report.account import Account, account_of_job
from tracekit.report.account_logs import add_last_words
from tracekit.report.account_others import account_of_cronjob, add_judgements, add_restarts
from tracekit.report.conclusion import conclusion
from tracekit.sql.computed import ReplayOptions, verdict_table
from tracekit.sql.session import Session
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.stores.place import local_trace
from tracekit.verdict import Judgement

if TYPE_CHECKING:
    import duckdb

__all__ = ["Account", "Judgement", "Replay", "Trace"]


@dataclass(frozen=True, slots=True)
class Replay:
    """What a replay found: judgements as objects and as an Arrow table."""

    kubernetes_version: str
    report: DiffReport

    @property
    def verdicts(self) -> list[Judgement]:
        """Every action with its verdict, by time."""
        return self.report.judgements

    @property
    def divergences(self) -> list[Judgement]:
        """The actions that the rules do not explain."""
        return self.report.divergences

    @property
    def summary(self) -> Mapping[str, Mapping[str, Mapping[str, int]]]:
        """Counts by controller, action and verdict."""
        return self.report.summary()

    def to_arrow(self) -> pa.Table:
        """The verdicts as a table: the columns of the view `verdicts`, times in ns."""
        return verdict_table(self.report.judgements, "").drop_columns(["trace"])


class Trace:
    """One trace, in a directory or in object storage."""

    def __init__(self, path: str | Path) -> None:
        self._name = str(path)
        #: Its directory; of a URL, that of the copy on this machine.
        self.path = local_trace(path)
        self._reader = TraceReader(self.path, on_damage="skip")
        self._judges: dict[tuple[str | None, str | None], Judge] = {}

    def __repr__(self) -> str:
        return f"tracekit.open({self._name!r})"

    @property
    def header(self) -> TraceHeader:
        """Kubernetes version, gates, flags and scope, as far as they are known."""
        return self._reader.header

    @property
    def problems(self) -> list[str]:
        """Sentences about what of the trace cannot be read."""
        return list(dict.fromkeys([*self._reader.problems, *self._session.problems]))

    @property
    def is_damaged(self) -> bool:
        """Whether any of it cannot be believed, or its end is lost: it gets no verdicts then."""
        return self._reader.is_damaged or self._session.is_damaged

    @cached_property
    def _session(self) -> Session:
        return Session([self.path])

    def sql(self, query: str) -> duckdb.DuckDBPyRelation:
        """A query over the views of docs/sql.md; `.to_arrow_table()`, `.df()`, `.pl()` fetch it."""
        return self._session.sql(query)

    def jobs(self, namespace: str | None = None) -> pa.Table:
        """The view `jobs`, ordered by creation; a UsageError for a namespace that is not there."""
        rows = self._session.table("SELECT * FROM jobs ORDER BY created_at, namespace, job")
        if namespace is None:
            return rows
        self._session.objects.check_namespace(namespace)
        return rows.filter(pc.equal(rows["namespace"], namespace))

    def replay(
        self,
        version: str | None = None,
        *,
        feature_gates: Mapping[str, bool] | None = None,
        namespace: str | None = None,
        job: str | None = None,
        controllers: Sequence[str] | None = None,
        min_actions: int = 0,
    ) -> Replay:
        """Run the ported controllers over the trace and judge what was observed.

        The trace is judged as a whole, once; the arguments choose what is shown of it.

        Args:
            version: Kubernetes version whose rules apply, instead of the trace's own.
            feature_gates: Gates that differ from that version's defaults.
            namespace: Only this namespace.
            job: Only this Job or CronJob, as "namespace/name".
            controllers: Only these: "job", "cronjob", "ttl".
            min_actions: How many actions there must be to judge.

        Raises:
            UsageError: What is asked for is not in the trace, or is too little.
            TraceFormatError: The trace has lost a part.
        """
        asked = Asked(namespace, job, controllers, min_actions)
        judge = self._judge(version, feature_gates)
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
        version: str | None = None,
        feature_gates: Mapping[str, bool] | None = None,
    ) -> Account:
        """The step-by-step account of a Job or CronJob.

        Its verdicts are those of `replay`: the whole trace is judged for it, once.

        Args:
            key: "namespace/name", or the name alone where it is unique; a pod's name is its Job.
            namespace: Where to look for a name alone.
            at: Only what happened by then: RFC 3339, or nanoseconds since 1970.
            version: Kubernetes version whose rules apply, instead of the trace's own.
            feature_gates: Gates that differ from that version's defaults.

        Raises:
            UsageError: The trace has no such object, or the time cannot be read.
        """
        at_ns = None if at is None else parse_time(at)
        judge = self._judge(version, feature_gates)
        account = self._account(*judge.objects.key(key, namespace), judge)
        if at_ns is not None:
            account = account.until(at_ns)
        else:
            account.opening = conclusion(self._session, account)
        if self.problems:
            lost = (
                "A part of the trace is lost: what it held counts here as never done, so take no "
                "word on the rules from this account."
            )
            account.closing = f"{account.closing} {lost}".strip()
        return account

    def _account(self, namespace: str, name: str, judge: Judge) -> Account:
        judged = judge.job(namespace, name) if (namespace, name) in judge.objects.jobs else None
        if judged is not None:
            about = judge.about("Job", namespace, name)
            account = account_of_job(judged, about)
            add_last_words(account, self._logs(namespace, name))
            others = [judgement for judgement in about if judgement.controller != "job"]
        elif (namespace, name) in judge.objects.cronjobs:
            others = judge.about("CronJob", namespace, name)
            account = self._cronjob(namespace, name, others)
        else:
            raise UsageError(
                f"of the Job {namespace}/{name} the trace has only Events: there is nothing to "
                "explain"
            )
        add_judgements(account, others)
        add_restarts(account, judge.run_context.restarts)
        return account

    def _logs(self, namespace: str, job: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """What containers of a Job's pods had said, as far as it was recorded."""
        table = self._reader.table(
            ("recv_ns", "raw"), streams=["logs"], namespace=namespace, job=job
        )
        for at_ns, raw in zip(table["recv_ns"].to_pylist(), table["raw"].to_pylist(), strict=True):
            yield at_ns or 0, orjson.loads(raw)

    def _cronjob(self, namespace: str, name: str, about: list[Judgement]) -> Account:
        query = (
            "SELECT epoch_ns(due_at) AS due_ns, outcome, policy, job, schedule, why "
            "FROM cron_ticks WHERE namespace = $namespace AND cronjob = $name ORDER BY due_at"
        )
        self._session.table("SELECT 1 FROM cron_ticks LIMIT 0")
        rows = self._session.rows(query, namespace=namespace, name=name)
        revisions = self._session.rows(
            "SELECT recv_ns, rv, type, spec FROM internal._states WHERE stream = 'cronjobs' "
            "AND namespace = $namespace AND name = $name ORDER BY seq",
            namespace=namespace,
            name=name,
        )
        return account_of_cronjob(namespace, name, rows, revisions, about)

    def _judge(self, version: str | None, gates: Mapping[str, bool] | None) -> Judge:
        """The judge by these rules; a trace that was judged is not judged again."""
        options = ReplayOptions(version, dict(gates or {}))
        rules = (options.kubernetes_version, options.gates_text)
        if rules not in self._judges:
            self._judges[rules] = Judge(self._reader, resolve_era(self._reader, *rules))
        return self._judges[rules]


def parse_time(at: str | int) -> int:
    """A time as RFC 3339 (a missing zone is UTC) or nanoseconds since 1970, in nanoseconds."""
    if isinstance(at, int):
        return at
    text = at.strip().replace(" ", "T")
    at_ns = parse_rfc3339(text)
    if at_ns is None:
        at_ns = parse_rfc3339(f"{text}Z")
    if at_ns is None:
        raise UsageError(f"{at!r} is no time: write it like 2026-11-21T05:42:45Z")
    return at_ns
