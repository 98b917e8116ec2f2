"""Which namespaces, Jobs and CronJobs a trace has, and the sentence for one that it has not.

Whoever asks for a part of a trace asks here first: a name that is not there is an error, for a
replay of nothing finds no divergence.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from tracekit.errors import UsageError
from tracekit.suggest import hint
from tracekit.trace.reader import TraceReader

_STREAMS = ("cronjobs", "events", "jobs", "pods")
_LISTS_THEM = "`tracekit jobs` lists what it has"


@dataclass(frozen=True)
class Objects:
    """The Jobs and CronJobs of a trace, as (namespace, name), in order."""

    jobs: tuple[tuple[str, str], ...]
    cronjobs: tuple[tuple[str, str], ...]

    @cached_property
    def namespaces(self) -> tuple[str, ...]:
        """Where there are Jobs or CronJobs."""
        return tuple(dict.fromkeys(namespace for namespace, _ in sorted(self.everything)))

    @property
    def everything(self) -> tuple[tuple[str, str], ...]:
        """Jobs, then CronJobs."""
        return (*self.jobs, *self.cronjobs)

    def check_namespace(self, namespace: str) -> None:
        """Raise a UsageError if nothing of the trace is in the namespace."""
        if namespace not in self.namespaces:
            meant = hint(namespace, self.namespaces, _LISTS_THEM)
            raise UsageError(
                f"the trace has no Job or CronJob in the namespace {namespace!r}{meant}"
            )

    def check_cronjob(self, name: str, namespace: str | None = None) -> None:
        """Raise a UsageError if no CronJob has the name, in the namespace or in any."""
        known = [own for space, own in self.cronjobs if namespace in (None, space)]
        if name not in known:
            raise UsageError(f"the trace has no CronJob {name!r}{hint(name, known, _LISTS_THEM)}")

    def key(self, text: str, namespace: str | None = None) -> tuple[str, str]:
        """The (namespace, name) of a Job or CronJob of the trace, given as "namespace/name".

        Raises:
            UsageError: It is written otherwise, in another namespace than the one asked for, or
                not in the trace.
        """
        space, name = split_key(text)
        if namespace is not None and namespace != space:
            raise UsageError(f"--job {text} is not in the namespace {namespace}: leave out -n")
        if (space, name) not in self.everything:
            raise missing_object(text, self.everything)
        return space, name


def split_key(text: str) -> tuple[str, str]:
    """The namespace and the name of "namespace/name"."""
    namespace, slash, name = text.partition("/")
    if not slash or not namespace or not name:
        raise UsageError(f"{text!r} is no Job: write it like NAMESPACE/NAME")
    return namespace, name


def missing_object(
    text: str, known: Iterable[tuple[str, str]], kind: str = "Job or CronJob"
) -> UsageError:
    """What to raise for a key that is not among the known ones."""
    keys = [f"{namespace}/{name}" for namespace, name in known]
    return UsageError(f"the trace has no {kind} {text}{hint(text, keys, _LISTS_THEM)}")


def objects_of(reader: TraceReader) -> Objects:
    """The Jobs and CronJobs that any row of a trace is about."""
    jobs: dict[tuple[str, str], None] = {}
    cronjobs: dict[tuple[str, str], None] = {}
    columns = ("namespace", "job", "cronjob")
    for table in reader.batches(columns, streams=_STREAMS):
        for row in table.group_by(list(columns)).aggregate([]).to_pylist():
            namespace = row["namespace"] or ""
            if row["job"]:
                jobs[namespace, row["job"]] = None
            if row["cronjob"]:
                cronjobs[namespace, row["cronjob"]] = None
    return Objects(tuple(sorted(jobs)), tuple(sorted(cronjobs)))
