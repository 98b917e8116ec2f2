"""`kubectl-text`: what kubectl prints for people: tables of `get`, with -w too, and `describe`.

Such text has no state: it names no revision, folds and rounds. So each object that it shows is kept as a
row of type CALL, as somebody's request to look and what it was answered, and no verdict rests on one:

| verb | a row for each | typed columns, beside `raw` with all that was read |
|---|---|---|
| `get`, `describe` | object (of a node: its conditions), each time that it is shown | `reason`: its STATUS; `job`: its own name, or what its labels or `Controlled By` say |
| `event` | Event (of a Job, CronJob, pod, node, or a maker of Jobs) | `reason`, `message`; its time is known to lie between `not_before_ns` and `recv_ns` |

A look has the time of the stamp before the line, else that at which all was printed (`--at`, the bundle's,
the file's). Lines of -w are in order, with no time of their own, so ages say nothing of them.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from tracekit.base.kube.events import MAKERS, PDB
from tracekit.base.kube.printed.ages import age_of
from tracekit.base.kube.printed.model import LeftOut, Shown, ShownEvent
from tracekit.base.kube.printed.texts import Item, Reading, is_printed
from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.trace.format.model import STREAM_KINDS, Call, Origin
from tracekit.trace.importers.kubectl import Stamps
from tracekit.trace.importers.observation import pack, unpack
from tracekit.trace.importers.report import ImportResult
from tracekit.trace.importers.sample import Sample
from tracekit.trace.importers.source import LineSource
from tracekit.trace.importers.spill import Spill

#: The name of the kind, and what its rows say that they come from.
KUBECTL_TEXT: Final = "kubectl-text"
#: Without one of these a text is no table or description of a kind that is read.
HINTS: Final = (
    rb"\bRESTARTS\b|\bCOMPLETIONS\b|\bSUCCESSFUL\b|\bSCHEDULE\b|\bLAST SEEN\b|Pods Statuses:|"
    rb"Concurrency Policy:|Controlled By:|Parallelism:|Containers:|\d/\d+ +[A-Z][\w:]+ +\d|"
    rb"Non-terminated Pods:|(?:Normal|Warning) +[A-Z]\w+ +(?:cronjob|job|pod|node)/"
)
_STREAMS = {"Job": "jobs", "CronJob": "cronjobs", "Pod": "pods"}
#: Kinds of which Events alone are read: they tell of nodes, of what was refused to makers of Jobs,
#: and of pods that no budget can count.
_EVENTS_ONLY = frozenset(("Node", PDB, *MAKERS))
_WHY = "text that kubectl prints for people has no states, only what somebody was shown"


class KubectlTextReader:
    """Reads what kubectl printed for people."""

    kubernetes_version: str | None = None

    def __init__(self, scratch: Path, result: ImportResult) -> None:
        self.result = result
        self._calls: Spill[tuple[int, int]] = Spill(scratch, "text", tuple[int, int])
        self._number = 0

    def read(self, source: LineSource) -> None:
        """Take what a text shows of Jobs, CronJobs and pods."""
        text, stamps = _Text(source, self.result), Stamps()
        for line in stamps.strip(source.text_lines()):
            for item in text.reading.line(line.decode(errors="replace")):
                self._take(item, text, stamps)
        for item in text.reading.end():
            self._take(item, text, stamps)
        for shown, at_ns in text.held():
            self._add(_call(shown, at_ns))

    def _take(self, item: Item, text: _Text, stamps: Stamps) -> None:
        if isinstance(item, LeftOut):
            self.result.problems[f"{item.why}, left out"] += 1
            return
        at_ns = stamps.at_ns(text.looked_ns)
        if isinstance(item, Shown):
            self.result.shapes["table row" if item.how == "get" else "description"] += 1
            text.hold(item, at_ns)
            return
        self.result.shapes["Event"] += 1
        if item.kind not in _STREAMS and item.kind not in _EVENTS_ONLY:
            self.result.problems["Events about other kinds, left out"] += 1
            return
        self._add(event_call(item, text.looked_ns if at_ns is None else at_ns))

    def _add(self, call: Call) -> None:
        self.result.calls[call.origin.verb or ""] += 1
        self.result.streams[call.stream] += 1
        self._number += 1
        self._calls.add((call.recv_ns, self._number), pack(call))

    def rows(self) -> Iterator[Call]:
        """All looks in order of time, those of one time as they were printed."""
        self.result.not_recorded = dict.fromkeys(STREAM_KINDS, _WHY)
        self.result.unlisted = self.result.stateless = _WHY
        self.result.times = "the text has no times but ages: each row has that of the look"
        for _, data in self._calls.sorted():
            call = unpack(data)
            if isinstance(call, Call):
                yield call


class _Text:
    """One text, and the rows of the table that is being read."""

    def __init__(self, source: LineSource, result: ImportResult) -> None:
        scope = result.scope
        spaces = scope.namespaces if scope is not None and scope.namespaces else frozenset()
        self.reading = Reading(next(iter(spaces)) if len(spaces) == 1 else None)
        self.looked_ns = source.collected_ns or 0
        self._rows: list[tuple[Shown, int | None, int]] = []

    def hold(self, shown: Shown, at_ns: int | None) -> None:
        """Keep a look until it is known whether its table goes on with -w."""
        self._rows.append((shown, at_ns, self.reading.table))

    def held(self) -> Iterator[tuple[Shown, int]]:
        """All looks, each with its time."""
        seen: set[tuple[int, str, str, str]] = set()
        watched: set[int] = set()
        for shown, _, table in self._rows:
            key = (table, shown.kind, shown.namespace or "", shown.name)
            if shown.how == "get" and (key in seen or shown.event is not None):
                watched.add(table)
            seen.add(key)
        for shown, at_ns, table in self._rows:
            if at_ns is not None or table not in watched:
                _date(shown, self.looked_ns if at_ns is None else at_ns)
            yield shown, self.looked_ns if at_ns is None else at_ns


def _date(shown: Shown, at_ns: int) -> None:
    """Say between which times an object was created that was so old then."""
    age = age_of(shown.printed.get("AGE", ""))
    if age is None or not at_ns:
        return
    seconds, unit = age
    latest_ns = at_ns - seconds * NS_PER_S
    shown.created_before = format_rfc3339(latest_ns)
    shown.created_after = format_rfc3339(latest_ns - unit * NS_PER_S)


def _call(shown: Shown, at_ns: int) -> Call:
    job = shown.name if shown.kind == "Job" else None
    if shown.kind == "Pod" and shown.owner_kind == "Job":
        job = shown.owner_name
    cronjob = shown.name if shown.kind == "CronJob" else None
    if shown.kind == "Job" and shown.owner_kind == "CronJob":
        cronjob = shown.owner_name
    return Call(
        _STREAMS.get(shown.kind, "events"),
        at_ns,
        msgspec.json.encode(shown),
        Origin(derived_from=KUBECTL_TEXT, verb=shown.how),
        namespace=shown.namespace,
        name=shown.name,
        uid=shown.uid,
        job=job,
        cronjob=cronjob,
        reason=shown.status,
        message=shown.message,
    )


def event_call(event: ShownEvent, at_ns: int) -> Call:
    """The row for an Event that somebody was shown then."""
    age = age_of(event.age or "")
    # Nothing of a record is from before 1970.
    latest_ns = max(0, at_ns if age is None else at_ns - age[0] * NS_PER_S)
    earliest_ns = None if age is None else max(0, latest_ns - age[1] * NS_PER_S)
    return Call(
        _STREAMS.get(event.kind, "events"),
        latest_ns,
        msgspec.json.encode(event),
        Origin(not_before_ns=earliest_ns, derived_from=KUBECTL_TEXT, verb="event"),
        namespace=event.namespace,
        name=event.name,
        job=event.name if event.kind == "Job" else None,
        cronjob=event.name if event.kind == "CronJob" else None,
        reason=event.reason,
        message=event.message,
    )


def is_kubectl_text(sample: Sample) -> bool:
    """Whether a file that begins so has a table or a description of a Job, CronJob or pod."""
    if not sample.is_text:
        return False
    lines = Stamps().strip(iter(sample.head.split(b"\n")))
    return is_printed(b"\n".join(lines).decode(errors="replace"))
