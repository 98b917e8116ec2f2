"""The rows of a trace, or of a part of one, as its objects with their revisions. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from tracekit.answers.judgements import Judgements
from tracekit.answers.pauses import Gap, pauses_of
from tracekit.answers.trace_model import (
    KEYS,
    STREAMS,
    CronJob,
    Facts,
    Job,
    Keyed,
    Pod,
    Row,
    Seen,
    State,
)
from tracekit.base.coverage import Coverage
from tracekit.base.cron import Generation
from tracekit.versions.release import Release


def keyed(rows: Iterable[Row]) -> Iterator[Keyed]:
    """Rows that are mappings, as `facts_of` takes them."""
    for row in rows:
        yield (row, *(row.get(name) for name in KEYS))  # type: ignore[misc]


def facts_of(
    rows: Iterable[Keyed],
    *,
    ticks: Sequence[Row],
    judgements: Judgements,
    not_judged: str | None,
    gaps: Sequence[Gap],
    streams: Mapping[str, int],
    problems: Sequence[str],
    generation: Generation,
    namespaces: Sequence[str] = (),
    logs: Sequence[Row] = (),
    container_notes: Mapping[str, Sequence[Row]] | None = None,
    refused_calls: Sequence[Row] = (),
    shown: Sequence[Seen] = (),
    release: Release = Release(),  # noqa: B008 - frozen
    coverage: Coverage = Coverage(),  # noqa: B008 - frozen
    first_ns: int = 1 << 62,
    end_ns: int = 0,
    **known: Any,
) -> Facts:
    """Put the rows of a trace, or of a part of one, together; in any order.

    `first_ns` and `end_ns`: where it has others, when the first and the last one was received.
    `known`: what else is known of some objects, as `Facts` has it.
    """
    states_of: dict[str, defaultdict[tuple[str, str, str], list[State]]] = {
        stream: defaultdict(list) for stream in STREAMS
    }
    for row, stream, kind, at_ns, rv, seq, namespace, name, uid in rows:
        if at_ns is not None:
            first_ns, end_ns = min(first_ns, at_ns), max(end_ns, at_ns)
        if (of_stream := states_of.get(stream or "")) is not None:
            state = State(row, at_ns or 0, rv or 0, seq or 0, gone=kind == "DELETED")
            of_stream[namespace or "", name or "", uid or ""].append(state)
    for stream, found in states_of.items():
        _sort(found.values(), by_rv=stream != "leases")
    jobs = {key[2]: Job(states) for key, states in sorted(states_of["jobs"].items())}
    strays = _give_pods(jobs, states_of["pods"])
    return Facts(
        jobs=list(jobs.values()),
        cronjobs=[CronJob(states) for _, states in sorted(states_of["cronjobs"].items())],
        strays=strays,
        events=sorted((s for states in states_of["events"].values() for s in states), key=_BY_RV),
        pauses=pauses_of(states_of["leases"], end_ns, gaps),
        ticks=ticks,
        judgements=judgements,
        not_judged=not_judged,
        gaps=gaps,
        streams=streams,
        problems=problems,
        first_ns=0 if not end_ns else first_ns,
        end_ns=end_ns,
        generation=generation,
        namespaces=namespaces,
        last_words=_by_pod(logs),
        container_notes=container_notes or {},
        refused_calls=refused_calls,
        shown=shown,
        release=release,
        coverage=coverage,
        **known,
    )


#: Kinds whose pods are to run for ever: they are nothing to who looks at batch work.
_SERVICES = frozenset({"ReplicaSet", "DaemonSet", "StatefulSet", "ReplicationController", "Node"})


def _give_pods(
    jobs: Mapping[str, Job], pods: Mapping[tuple[str, str, str], list[State]]
) -> list[Pod]:
    """Each Job gets its pods, oldest first; those of no Job that was seen are returned."""
    strays = []
    for _, states in sorted(pods.items()):
        pod = Pod(states)
        if states[-1].row["owner_kind"] in _SERVICES:
            continue
        owner = jobs.get(pod.owner_uid) if any(s.row["job"] for s in states) else None
        if owner is None:
            strays.append(pod)
        else:
            owner.pods.append(pod)
    for job in jobs.values():
        job.pods.sort(key=lambda p: (p.first.rv, p.name))
    return strays


def _sort(states_of: Iterable[list[State]], *, by_rv: bool) -> None:
    """Put the revisions of each object into the order of the store."""
    for states in states_of:
        if len(states) > 1:
            states.sort(key=_BY_RV if by_rv else _BY_SEQ)


_BY_RV, _BY_SEQ = attrgetter("rv", "gone", "seq"), attrgetter("gone", "seq")


def _by_pod(logs: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    found: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for log in logs:
        found[log["namespace"] or "", log["pod"] or ""].append(log)
    return dict(found)
