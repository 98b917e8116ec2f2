"""What a report is about: all of a trace, a time or namespace of it, or one Job or CronJob."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from tracekit.answers.findings.diagnosis import OF_THE_WHOLE
from tracekit.base.time_input import ALWAYS, TimeRange
from tracekit.sql.session import Session

Key = tuple[str, str]


class Scope(Struct, frozen=True):
    """The Jobs and CronJobs that are shown, and the time that is asked for."""

    #: (namespace, name) of the Jobs; None: all.
    jobs: frozenset[Key] | None = None
    #: Of the CronJobs; None: all.
    cronjobs: frozenset[Key] | None = None
    times: TimeRange = ALWAYS
    namespace: str | None = None

    def where(self) -> str:
        """The condition of a query over rows of Jobs; the values are bound."""
        if self.jobs is None:
            return "true"
        if len(self.jobs) == 1:  # a view of one Job is made of the rows of one
            return "namespace = $job_namespace AND job = $job_name"
        return "namespace || '/' || job IN (SELECT unnest($jobs::VARCHAR[]))"

    @property
    def values(self) -> dict[str, Any]:
        """What `where` binds."""
        if self.jobs is None:
            return {}
        if len(self.jobs) == 1:
            ((namespace, name),) = self.jobs
            return {"job_namespace": namespace, "job_name": name}
        return {"jobs": sorted(f"{namespace}/{name}" for namespace, name in self.jobs)}

    def holds(self, kind: str, namespace: str, name: str) -> bool:
        """Whether an object is a part of it; what is of the whole is a part of everything."""
        if self.namespace not in (None, namespace) and kind not in OF_THE_WHOLE:
            return False
        of_kind = {"Job": self.jobs, "CronJob": self.cronjobs}.get(kind)
        return of_kind is None or (namespace, name) in of_kind


def scope_of(
    session: Session, key: str | None, times: TimeRange, namespace: str | None = None
) -> Scope:
    """The scope that a user names: a key as `explain` takes it, or None; a time, a namespace.

    Raises:
        UsageError: The trace has no such object.
    """
    if key is None and not times and namespace is None:
        return Scope()
    rows = session.rows(
        "SELECT namespace, job, cronjob, epoch_ns(created_at) AS created_ns, "
        "epoch_ns(coalesce(finished_at, gone_at)) AS until_ns FROM jobs"
    )
    lived = {
        (r["namespace"], r["job"]): r["cronjob"]
        for r in rows
        if times.meets(r["created_ns"] or 0, r["until_ns"]) and namespace in (None, r["namespace"])
    }
    if key is None:
        return Scope(frozenset(lived), None, times, namespace)
    found = session.objects.key(key, namespace)
    if found in session.objects.jobs:
        return Scope(frozenset([found]), frozenset(), times)
    own = (job for job, owner in lived.items() if (job[0], owner) == found)
    return Scope(frozenset(own), frozenset([found]), times)
