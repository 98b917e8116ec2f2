"""Which namespaces, Jobs and CronJobs a trace has, and the sentence for one that it has not.

Whoever asks for a part of a trace asks here first: a name that is not there is an error, for a
replay of nothing finds no divergence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from tracekit.base.errors import UsageError
from tracekit.base.suggest import hint
from tracekit.trace.reading.reader import TraceReader

_STREAMS = ("cronjobs", "events", "jobs", "pods")
_LISTS_THEM = "`tracekit jobs` lists what it has"
#: Kinds before a slash, as kubectl takes them.
_KINDS = {
    **dict.fromkeys(("job", "jobs", "job.batch", "jobs.batch"), "job"),
    **dict.fromkeys(("cronjob", "cronjobs", "cj", "cronjob.batch", "cronjobs.batch"), "cronjob"),
    **dict.fromkeys(("pod", "pods", "po"), "pod"),
}
_TITLES = {"": "Job, CronJob or pod", "job": "Job", "cronjob": "CronJob", "pod": "pod"}
_MOST_NAMED = 5


class Objects(Struct, frozen=True, dict=True):
    """The Jobs and CronJobs of a trace, as (namespace, name), in order."""

    jobs: tuple[tuple[str, str], ...]
    cronjobs: tuple[tuple[str, str], ...]
    #: (namespace, pod, Job) of the pods of Jobs.
    pods: tuple[tuple[str, str, str], ...] = ()
    #: (namespace, pod) of those of no Job.
    others: tuple[tuple[str, str], ...] = ()

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
        """The (namespace, name) of a Job or CronJob of the trace, as users name it.

        That is "namespace/name"; a name alone, of a pod too, if only one object has it (in the
        namespace, if one is given); or "job/name" and the like, as kubectl takes it.

        Raises:
            UsageError: It is in another namespace than the one asked for, not in the trace, or
                there more than once.
        """
        first, slash, name = text.partition("/")
        if slash and name and (first, name) in self.everything:
            if namespace is not None and namespace != first:
                raise UsageError(f"{text} is not in the namespace {namespace}: leave out -n")
            return first, name
        kind = _KINDS.get(first.lower()) if slash else ""
        if kind is None:
            if not first or not name:
                raise UsageError(f"{text!r} is no Job: write it like NAMESPACE/NAME")
            found = self._owners(name, first, "pod")
            if len(found) == 1:
                return found[0]
            self._check_others(name, first, "pod")
            raise missing_object(text, self.everything)
        return self._only(text, name if slash else text, namespace, kind)

    def _only(self, text: str, name: str, namespace: str | None, kind: str) -> tuple[str, str]:
        """The one object with a name alone."""
        found = self._owners(name, namespace, kind)
        if len(found) == 1:
            return found[0]
        if not found and (elsewhere := self._owners(name, None, kind)):
            keys = ", ".join(f"{space}/{own}" for space, own in elsewhere[:_MOST_NAMED])
            raise UsageError(f"{text!r} is not in the namespace {namespace}: it is {keys}")
        if not found:
            self._check_others(name, namespace, kind)
            meant = hint(name, self._names(kind), _LISTS_THEM)
            where = f" in the namespace {namespace}" if namespace else ""
            what = _TITLES[kind]
            raise UsageError(f"the trace has no {what} {name!r}{where}{meant}")
        places = ", ".join(f"{space}/{own}" for space, own in found[:_MOST_NAMED])
        more = ", …" if len(found) > _MOST_NAMED else ""
        raise UsageError(f"{text!r} is not unique: name one of {places}{more}")

    def _check_others(self, name: str, namespace: str | None, kind: str) -> None:
        """Raise a UsageError if a pod of no Job has the name."""
        for space, pod in self.others if kind in ("", "pod") else ():
            if pod == name and namespace in (None, space):
                raise UsageError(
                    f"the pod {space}/{pod} has no Job in this trace, so there is no account of "
                    "it: `tracekit diagnose` says what is the matter with it, if anything is"
                )

    def _names(self, kind: str) -> list[str]:
        """What has a name of its own, of a kind."""
        jobs = [name for _, name in self.jobs]
        cronjobs = [name for _, name in self.cronjobs]
        pods = [pod for _, pod, _ in self.pods]
        chosen = {"job": jobs, "cronjob": cronjobs, "pod": pods}
        return list(dict.fromkeys(chosen.get(kind, [*jobs, *cronjobs, *pods])))

    def _owners(self, name: str, namespace: str | None, kind: str) -> list[tuple[str, str]]:
        """What has the name, pods by their Jobs; an empty kind is any."""
        groups = {"job": self.jobs, "cronjob": self.cronjobs}
        found = [
            key
            for of_kind, keys in groups.items()
            for key in keys
            if kind in ("", of_kind) and key[1] == name
        ]
        if kind in ("", "pod") and not found:
            found = [(space, job) for space, pod, job in self.pods if pod == name]
        return [key for key in dict.fromkeys(found) if namespace in (None, key[0])]


def missing_object(
    text: str, known: Iterable[tuple[str, str]], kind: str = "Job or CronJob"
) -> UsageError:
    """What to raise for a key that is not among the known ones."""
    known = list(known)
    same = [key for key in known if key[1] == text.rpartition("/")[2]]
    keys = [f"{namespace}/{name}" for namespace, name in same or known]
    if same:
        meant = ", ".join(keys[:_MOST_NAMED])
        return UsageError(f"the trace has no {kind} {text}; did you mean {meant}?")
    return UsageError(f"the trace has no {kind} {text}{hint(text, keys, _LISTS_THEM)}")


def objects_of(reader: TraceReader) -> Objects:
    """The Jobs and CronJobs that any row of a trace is about."""
    jobs: dict[tuple[str, str], None] = {}
    cronjobs: dict[tuple[str, str], None] = {}
    pods: dict[tuple[str, str, str], None] = {}
    names_cronjobs = False
    columns = ("stream", "namespace", "name", "job", "owner_kind", "involved_kind")
    for table in reader.batches(columns, streams=_STREAMS):
        # Of pods and CronJobs alone the names matter: each Event has one of its own.
        named = (pc.equal(table["stream"], stream) for stream in ("cronjobs", "pods"))
        names = pc.if_else(pc.or_(*named), table["name"], None)
        rows = table.set_column(columns.index("name"), "name", names)
        for stream, space, name, job, *kinds in _distinct(rows):
            namespace = space or ""
            names_cronjobs = names_cronjobs or "CronJob" in kinds
            if job:
                jobs[namespace, job] = None
            if stream == "pods" and name:
                pods[namespace, name, job or ""] = None
            if stream == "cronjobs" and name:
                cronjobs[namespace, name] = None
    if names_cronjobs:  # a compact trace has the names in the objects' texts alone
        for table in reader.batches(("namespace", "cronjob"), streams=("events", "jobs")):
            for space, name in _distinct(table):
                if name:
                    cronjobs[space or "", name] = None
    return Objects(
        tuple(sorted(jobs)),
        tuple(sorted(cronjobs)),
        tuple(pod for pod in sorted(pods) if pod[2]),
        tuple((space, name) for space, name, job in sorted(pods) if not job),
    )


#: What of Events is asked for about a pod.
_OF_EVENTS = (
    "type", "recv_ns", "uid", "namespace", "involved_kind", "involved_name", "reason", "message",
    "event_type", "count", "first_ns", "last_ns", "component",
)  # fmt: skip


def events_of_pod(reader: TraceReader, text: str, namespace: str | None) -> list[dict[str, Any]]:
    """The Events about the one pod that users name so, oldest first; empty where there is none.

    As in `Objects.key`, that is "namespace/name", "pod/name", or a name alone.
    """
    first, slash, name = text.partition("/")
    if slash and _KINDS.get(first.lower(), "pod") != "pod":
        return []
    name = name if slash else text
    wanted = first if slash and first.lower() not in _KINDS else namespace
    found: list[dict[str, Any]] = []
    for table in reader.batches(_OF_EVENTS, streams=("events",)):
        named = pc.equal(table["involved_name"].cast(pa.string()), name)
        pods = pc.and_(named, pc.equal(table["involved_kind"].cast(pa.string()), "Pod"))
        found += table.filter(pods).to_pylist()
    mine = [row for row in found if wanted in (None, row["namespace"] or "")]
    return mine if len({row["namespace"] for row in mine}) == 1 else []


def _distinct(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """The rows of a table, each once."""
    columns = table.schema.names
    rows = table.group_by(columns).aggregate([])
    yield from zip(*(rows[column].to_pylist() for column in columns), strict=True)
