"""What a controller manager's log tells where no record is beside it: its Events, as shown.

The log has no states, so that nothing is judged by it; but each Event that the controllers posted
stands in it, and with which words the CronJob controller of 1.20 and before gave up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import astuple, replace

from tracekit.base.kube.events import MAKERS
from tracekit.base.kube.printed.model import ShownEvent
from tracekit.trace.format.model import Call
from tracekit.trace.importers.kubectl_text import event_call

#: How releases before 1.22 wrote an Event to the log.
OLD_EVENT: Final = re.compile(
    r'^Event\(v1\.ObjectReference\{Kind:"(\w+)", Namespace:"([^"]*)", Name:"([^"]*)".*?\}\): '
    r"type: '(\w+)' reason: '(\w+)' (.*)$",
    re.DOTALL,
)
#: Upstream: pkg/controller/cronjob/cronjob_controller.go (syncOne), up to 1.20.
_GAVE_UP = re.compile(r"^Cannot determine if ([^/\s]+)/(\S+) needs to be started: (.*)$", re.DOTALL)
_KINDS = frozenset(("Job", "CronJob", "Pod", "Node", *MAKERS))


def place_of(value: Any) -> tuple[str, str] | None:
    """The namespace and name of an object, as text or as JSON has it."""
    if isinstance(value, dict):
        space, name = value.get("namespace"), value.get("name")
        return (str(space), str(name)) if space and name else None
    space, _, name = str(value or "").rpartition("/")
    return (space, name) if space and name else None


def event_of(message: str, values: Mapping[str, Any]) -> ShownEvent | None:
    """The Event that a line tells of; None if it tells of none about batch work or a node."""
    if message == "Event occurred":
        about = place_of(values.get("object")) or ("", str(values.get("object") or "").lstrip("/"))
        kind, reason = str(values.get("kind")), str(values.get("reason"))
        return _shown(kind, about, str(values.get("type")), reason, str(values.get("message")))
    if (old := OLD_EVENT.match(message)) is not None:
        return _shown(old[1], (old[2], old[3]), old[4], old[5], old[6])
    if (gave_up := _GAVE_UP.match(message)) is not None:
        about = gave_up[1], gave_up[2]
        return _shown("CronJob", about, "Warning", "FailedNeedsStart", gave_up[3])
    return None


def _shown(
    kind: str, about: tuple[str, str], type_: str, reason: str, message: str
) -> ShownEvent | None:
    space, name = about
    if kind not in _KINDS or not name:
        return None
    space_or_none = None if kind == "Node" else space
    return ShownEvent(
        kind=kind, name=name, namespace=space_or_none, how="log", type=type_, reason=reason,
        message=message,
    )  # fmt: skip


class Events:
    """The Events of a log, each with when it was posted last and how often."""

    def __init__(self) -> None:
        self._found: dict[tuple[Any, ...], tuple[int, int, ShownEvent]] = {}

    def __len__(self) -> int:
        return len(self._found)

    def add(self, event: ShownEvent, at_ns: int) -> None:
        """Count one that was posted then."""
        last_ns, times, _ = self._found.get(astuple(event), (0, 0, event))
        self._found[astuple(event)] = max(last_ns, at_ns), times + 1, event

    def calls(self) -> Iterator[Call]:
        """A row for each, in order of time."""
        for at_ns, times, event in sorted(self._found.values(), key=lambda entry: entry[0]):
            yield event_call(replace(event, count=times), at_ns)
