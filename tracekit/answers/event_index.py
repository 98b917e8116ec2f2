"""By what Events are found: the object that they are about, or one that its name tells of."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

_Row = Mapping[str, Any]
#: Kueue's Events: of a Job that it stopped, and of its Workload `job-NAME-HASH` (Kueue's
#: pkg/controller/jobframework/reconciler.go and pkg/scheduler).
QUEUE_STOPPED, QUEUE_WAITS = "Stopped", ("Pending", "Preempted")
#: The CronJob controller's Event, of type Normal, of a run that waits for the one before.
ALREADY_ACTIVE: Final = "JobAlreadyActive"
#: In the API server's answers to who creates a Job.
_JOB_REFUSED: Final = re.compile(r'(?:Job|jobs)\.batch "[^"]*" is (?:invalid|forbidden)')


class _Event(Protocol):
    row: _Row


_Of = TypeVar("_Of", bound=_Event)


def by_name(
    events: Sequence[_Of], name_of: Callable[[_Row], str | None]
) -> dict[tuple[str, str], list[_Of]]:
    """Events by their namespace and a name that they tell of."""
    found: defaultdict[tuple[str, str], list[_Of]] = defaultdict(list)
    for event in events:
        if (name := name_of(event.row)) is not None:
            found[event.row["namespace"] or "", name].append(event)
    return dict(found)


def owner_of_pod(event: _Row) -> str | None:
    """The Job whose pods have a name like that of the pod that it is about."""
    if event["involved_kind"] != "Pod":
        return None
    return _job_of(str(event["involved_name"] or ""))


def owner_of_index(event: _Row) -> str | None:
    """The same of an Indexed Job, whose pods have their index in their name."""
    return _before_index(owner_of_pod(event) or "")


def is_pod_of(job: str, pod: str) -> bool:
    """Whether a pod has a name like a Job's: NAME-SUFFIX, of an Indexed one NAME-INDEX-SUFFIX."""
    base = _job_of(pod)
    return job in (base, _before_index(base))


def _job_of(pod: str) -> str:
    return pod.rpartition("-")[0]


def _before_index(base: str) -> str | None:
    name, _, index = base.rpartition("-")
    return name if name and index.isdigit() else None


def claim_of(event: _Row) -> str | None:
    """The PersistentVolumeClaim that it is about."""
    claimed = event["involved_kind"] == "PersistentVolumeClaim"
    return str(event["involved_name"] or "") if claimed else None


def held_by_queue(event: _Row) -> str | None:
    """The Job of which a queueing system says in an Event why it waits."""
    kind, name = event["involved_kind"], str(event["involved_name"] or "")
    if kind == "Job" and event["reason"] == QUEUE_STOPPED:
        return name
    if kind == "Workload" and event["reason"] in QUEUE_WAITS and name.startswith("job-"):
        return name.removeprefix("job-").rpartition("-")[0]
    return None


def refuses_job(event: _Row) -> bool:
    """Whether it tells who creates Jobs that one was refused."""
    return _JOB_REFUSED.search(event["message"] or "") is not None


def involved(event: _Row) -> tuple[str, str, str]:
    """Namespace, name and uid of what it is about."""
    return event["namespace"] or "", event["involved_name"] or "", event["involved_uid"] or ""
