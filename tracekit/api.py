"""The Python API: one object per trace.

trace = tracekit.open("run.trace")
trace.sql("SELECT job, reason FROM jobs WHERE outcome = 'Failed'").df()
trace.replay().divergences
print(trace.explain("shop/import").text())
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tracekit.diff.trace import DiffReport, judge_groups
from tracekit.eras.era import Era
from tracekit.eras.job import JobRules
from tracekit.errors import TraceFormatError, UsageError
from tracekit.kube.timestamps import parse_rfc3339
from tracekit.replay.feed import COLUMNS
from tracekit.report.account import Account, account_of_job
from tracekit.report.account_others import account_of_cronjob, add_judgements, add_restarts
from tracekit.sql.computed import ReplayOptions, verdict_table
from tracekit.sql.messages import closest
from tracekit.sql.session import Session
from tracekit.trace.judged import resolve_era, run_diff
from tracekit.trace.model import TraceHeader
from tracekit.trace.place import local_trace
from tracekit.trace.reader import TraceReader
from tracekit.trace.run_context import run_context_of
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

    @cached_property
    def _session(self) -> Session:
        return Session([self.path])

    def sql(self, query: str) -> duckdb.DuckDBPyRelation:
        """A query over the views of docs/sql.md; `.to_arrow_table()`, `.df()`, `.pl()` fetch it."""
        return self._session.sql(query)

    def jobs(self, namespace: str | None = None) -> pa.Table:
        """The view `jobs`, ordered by creation."""
        rows = self._session.table("SELECT * FROM jobs ORDER BY created_at, namespace, job")
        if namespace is None:
            return rows
        return rows.filter(pc.equal(rows["namespace"], namespace))

    def replay(
        self,
        version: str | None = None,
        *,
        feature_gates: Mapping[str, bool] | None = None,
        namespace: str | None = None,
        job: str | None = None,
    ) -> Replay:
        """Run the ported controllers over the trace, or a part of it, and judge what was observed.

        Args:
            version: Kubernetes version whose rules apply, instead of the trace's own.
            feature_gates: Gates that differ from that version's defaults.
            namespace: Only this namespace.
            job: Only this Job, as "namespace/name".
        """
        era = self._era(version, feature_gates)
        self._require_whole()
        report = run_diff(self._reader, era, namespace=namespace, job=job)
        self._require_whole()
        return Replay(str(era.version), report)

    def _require_whole(self) -> None:
        """Judge nothing by a record that has lost a part: that would count as never done."""
        if self.problems:
            raise TraceFormatError(f"{self.problems[0]}; until then it gets no verdicts")

    def explain(self, key: str, *, at: str | int | None = None) -> Account:
        """The step-by-step account of a Job or CronJob, given as "namespace/name".

        Args:
            key: "namespace/name".
            at: Only what happened by then: RFC 3339, or nanoseconds since 1970.
        """
        namespace, slash, name = key.partition("/")
        if not slash or not namespace or not name:
            raise UsageError(f"{key!r} is no Job: write it like NAMESPACE/NAME")
        at_ns = None if at is None else parse_time(at)
        account = self._account(namespace, name)
        if at_ns is not None:
            account = account.until(at_ns)
        if self.problems:
            lost = (
                "A part of the trace is lost: what it held counts here as never done, so take no "
                "word on the rules from this account."
            )
            account.closing = f"{account.closing} {lost}".strip()
        return account

    def _account(self, namespace: str, name: str) -> Account:
        groups = (
            group
            for group in self._reader.groups(COLUMNS, namespace=namespace)
            if group.job in (None, name)
        )
        around = run_context_of(self._reader)
        if self._knows("jobs", namespace, name):
            rules = JobRules.of(self._era(None, None))
            judged = [
                found
                for found in judge_groups(groups, rules, around)
                if found.replay.history.name == name
            ]
            if judged:
                account = account_of_job(judged[0])
                add_judgements(account, self._of_other_controllers("Job", namespace, name))
                add_restarts(account, around.restarts)
                return account
        if self._knows("cronjobs", namespace, name):
            account = self._cronjob(namespace, name)
            add_judgements(account, self._of_other_controllers("CronJob", namespace, name))
            add_restarts(account, around.restarts)
            return account
        key = f"{namespace}/{name}"
        raise UsageError(f"the trace has no Job or CronJob {key}{self._close(key)}")

    def _of_other_controllers(self, kind: str, namespace: str, name: str) -> list[Judgement]:
        """What the CronJob and TTL controllers did to the object, and what was theirs to do."""
        report = run_diff(self._reader, self._era(None, None), namespace=namespace)
        return [
            judgement
            for judgement in report.judgements
            if judgement.controller != "job"
            and (
                (judgement.object.kind, judgement.object.name) == (kind, name)
                or (kind == "Job" and judgement.subject == name)
            )
        ]

    def _cronjob(self, namespace: str, name: str) -> Account:
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
        return account_of_cronjob(namespace, name, rows, revisions)

    def _knows(self, stream: str, namespace: str, name: str) -> bool:
        rows = self._session.rows(
            "SELECT 1 FROM internal._states WHERE stream = $stream AND namespace = $namespace "
            "AND name = $name LIMIT 1",
            stream=stream,
            namespace=namespace,
            name=name,
        )
        return bool(rows)

    def _close(self, key: str) -> str:
        rows = self._session.rows(
            "SELECT DISTINCT namespace || '/' || name AS key FROM internal._states "
            "WHERE stream IN ('jobs', 'cronjobs')"
        )
        found = closest(key, [row["key"] for row in rows if row["key"]])
        return f"; did you mean {found}?" if found else ": `tracekit jobs` lists what it has"

    def _era(self, version: str | None, gates: Mapping[str, bool] | None) -> Era:
        options = ReplayOptions(version, dict(gates or {}))
        return resolve_era(self._reader, options.kubernetes_version, options.gates_text)


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
