"""What kubectl printed for people, look by look, as things that happened. Pure.

What a text shows is no state: each look says how an object was shown, each Event what was told of
it, and a description at which times its containers began and ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from tracekit.answers.event_index import is_pod_of
from tracekit.answers.happening import Happening
from tracekit.answers.trace_model import Seen
from tracekit.answers.words import counted
from tracekit.base.kube.printed.model import Shown, ShownContainer, ShownEvent
from tracekit.base.kube.timestamps import parse_rfc3339

#: What a row of a table says beside its STATUS, where it has that column.
_CELLS = ("READY", "COMPLETIONS", "RESTARTS", "AGE", "SUSPEND", "ACTIVE", "LAST SCHEDULE", "NODE")
_UNSAID = frozenset(("", "<none>", "<unknown>"))
#: Upstream: pkg/controller/cronjob/utils.go (getJobName): the minute, or up to 1.20 the second.
_OF_RUN = re.compile(r"(.+)-\d{8,10}")
_TROUBLE = re.compile(
    r"Error|BackOff|Failed|Evicted|OOMKilled|Invalid|Never|NodeLost|DeadlineExceeded|StatusUnknown"
)


class Owners:
    """To which Job and CronJob an object belongs: by what was shown, else by its name."""

    def __init__(self, shown: Sequence[Seen]) -> None:
        items = [seen.shown for seen in shown]
        self.jobs = {(i.namespace or "", i.name) for i in items if i.kind == "Job"}
        self.cronjobs = {(i.namespace or "", i.name) for i in items if i.kind == "CronJob"}
        self.pods = {(i.namespace or "", i.name) for i in items if i.kind == "Pod"}
        self._named: dict[tuple[str, str, str], str] = {}
        for item in items:
            if isinstance(item, Shown) and item.owner_name and item.owner_kind:
                space = item.namespace or ""
                self._named[item.kind, space, item.name] = item.owner_name
                if (item.kind, item.owner_kind) == ("Pod", "Job"):
                    self.jobs.add((space, item.owner_name))

    def job_of(self, kind: str, namespace: str, name: str) -> str:
        """The Job of a pod, or the Job itself; "" for none that is known."""
        if kind == "Job":
            return name
        if kind != "Pod":
            return ""
        named = self._named.get((kind, namespace, name))
        if named is not None:
            return named if (namespace, named) in self.jobs else ""
        mine = (job for space, job in self.jobs if space == namespace and is_pod_of(job, name))
        return max(mine, key=len, default="")

    def cronjob_of(self, kind: str, namespace: str, name: str) -> str:
        """The CronJob of a Job, or the CronJob itself; "" for none that is known."""
        if kind == "CronJob":
            return name
        job = self.job_of(kind, namespace, name)
        named = self._named.get(("Job", namespace, job)) if job else None
        if named is None and (match := _OF_RUN.fullmatch(job)) is not None:
            named = match[1]
        return named if named and (namespace, named) in self.cronjobs else ""


def steps_of(shown: Sequence[Seen]) -> list[Happening]:
    """All that a text tells, in order of time; what has one time stays as it was printed."""
    owners = Owners(shown)
    steps = (step for seen in shown for step in _of_item(seen, owners))
    return sorted(dict.fromkeys(steps), key=lambda step: step.at_ns)


def _of_item(seen: Seen, owners: Owners) -> Iterator[Happening]:
    item = seen.shown
    space = item.namespace or ""
    about = (item.kind, space, item.name)
    belongs = owners.job_of(*about), owners.cronjob_of(*about)
    if isinstance(item, ShownEvent):
        times = f" ({item.count} times)" if item.count > 1 else ""
        what = f"Event {item.reason}{times}: {item.message}"
        bad = item.type == "Warning"
        yield Happening(seen.at_ns, *about, what, item.source, bad, *belongs)
        return
    for text, moment, bad in _moments(item):
        if moment is not None and (at_ns := parse_rfc3339(moment)) is not None:
            yield Happening(at_ns, *about, text, None, bad, *belongs)
    what, bad = _look(item)
    yield Happening(seen.at_ns, *about, what, None, bad, *belongs)


def _moments(item: Shown) -> Iterator[tuple[str, str | None, bool]]:
    """The times that a description has."""
    if item.kind == "Job":
        yield "began, by its Start Time", item.started, False
        yield "was complete, by its Completed At", item.completed, False
    for one in item.containers or ():
        yield f"container {one.name} began", one.started, False
        yield f"container {one.name} ended{_how(one)}", one.finished, bool(one.exit_code)


def _how(one: ShownContainer) -> str:
    code = None if one.exit_code is None else f"exit code {one.exit_code}"
    said = ", ".join(part for part in (one.reason, code) if part)
    return f": {said}" if said else ""


def _look(item: Shown) -> tuple[str, bool]:
    """How an object was shown, and whether that is trouble."""
    status = item.reason or item.status
    gone = " as deleted" if item.event == "DELETED" else ""
    said = [*_counts(item), *_waits(item.containers or ())]
    said += [
        f"{name} {value}"
        for name in _CELLS
        if item.how == "get" and (value := item.printed.get(name, "")) not in _UNSAID
    ]
    how = "described" if item.how == "describe" else "shown"
    as_what = f" as {status}" if status else ""
    details = f": {', '.join(said)}" if said else ""
    message = f" ({item.message})" if item.message else ""
    trouble = bool(item.failed) or _TROUBLE.search(f"{status} {' '.join(said)}") is not None
    return f"was {how}{gone}{as_what}{details}{message}", trouble


def _counts(item: Shown) -> Iterator[str]:
    if item.how == "describe" and item.kind == "Job":
        for name in ("active", "succeeded", "failed"):
            if (count := getattr(item, name)) is not None:
                yield f"{name} {count}"
    if item.how == "describe" and item.suspended is not None:
        yield f"suspend {str(item.suspended).lower()}"


def _waits(containers: Iterable[ShownContainer]) -> Iterator[str]:
    for one in containers:
        parts = [one.state or "", one.reason or ""]
        text = " ".join(part for part in parts if part)
        if one.before_reason:
            code = f", exit code {one.before_exit_code}" if one.before_exit_code is not None else ""
            text += f" (before that {one.before_reason}{code})"
        if one.restarts:
            text += f", {counted(one.restarts, 'restart')}"
        if text:
            yield f"container {one.name} {text}"
