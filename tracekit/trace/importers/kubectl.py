"""`kubectl`: what somebody's terminal shows: `kubectl get … -w`, lists as JSON or YAML, dumps.

`-w -o json --output-watch-events` prints one document for each event, `-w -o json` one for each
state, without its type; `ts` (moreutils) may stand before each line. A list is one look. The
objects that a watch begins with are printed as ADDED too: until something else comes, they count as
looks.

What ships Events writes each as it is, without its kind, or in an object of its own (`shipped.py`);
OpenTelemetry's collector writes OTLP (`otlp.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import orjson

from tracekit.base.json_text import json_text
from tracekit.base.kube.timestamps import NS_PER_S, parse_rfc3339
from tracekit.trace.format.model import CLUSTER_WIDE, STREAM_KINDS, WITHOUT_COLUMNS
from tracekit.trace.importers import otlp
from tracekit.trace.importers.documents import documents
from tracekit.trace.importers.frames import (
    CAN_BE_AHEAD,
    frame,
    kept_of,
    latest_stamp,
    listed,
    lists_within,
    split_list,
    stream_named,
    stream_of,
)
from tracekit.trace.importers.looks import Items, Look, Looks, look_of
from tracekit.trace.importers.refusals import refusal_in
from tracekit.trace.importers.report import ImportResult
from tracekit.trace.importers.sample import SAMPLE_BYTES, Sample, unstamped, without_klog_head
from tracekit.trace.importers.shipped import events_in, in_cells, is_event_table
from tracekit.trace.importers.source import LineSource
from tracekit.trace.importers.tables import rows
from tracekit.trace.importers.values import check_values, has_half_a_character
from tracekit.trace.importers.yamls import BlocksBetween, is_yaml, yaml_documents

Raw = dict[str, Any]

_WHOLE_BYTES = 4 * 1024 * 1024
_TYPES = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"})
_OF_SERVER = ("uid", "resourceVersion", "creationTimestamp")
#: What is said of objects that no server has stored.
MANIFESTS = (
    "objects that lack what a server sets (uid, resourceVersion, creationTimestamp, status): they "
    "are manifests, which say what should be and not what was, left out"
)
NAMELESS_EVENTS = (
    "Events without uid, resourceVersion and creationTimestamp, by which one is told from "
    "another: somebody took them out, left out"
)
#: kubectl prints the kind of a list behind its items.
CUT_LIST = "a list that ends before it names its kind: it is cut off, fetch it anew"
#: Of 36,767 Jobs, CronJobs and pods of 1.14 to 1.37 each has a status, if only an empty one.
CUT_OBJECT = (
    "an object that ends before its status, which a server always writes: it is cut off, or the "
    "status was taken out; print it anew"
)
#: Upstream: RFC 8259, section 8.2. No API server writes that; what cuts a text between two does.
HALF = "documents with half a character in a text (\\ud800 to \\udfff alone)"
REPEATED = "objects that are in several files, taken once"
_KEPT_KINDS = frozenset({*STREAM_KINDS.values(), *WITHOUT_COLUMNS.values()})
_WITH_STATUS = frozenset({"jobs", "cronjobs", "pods"})


class Stamps:
    """Takes the time stamps of `ts` off the lines, and remembers the last."""

    def __init__(self) -> None:
        self.last: bytes | None = None
        #: When what is read now was observed, if what wrote it says so, Unix ns.
        self.observed_ns: int | None = None

    def strip(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        """The lines without their stamps."""
        for line in lines:
            stamp, rest = unstamped(line)
            if stamp is not None:
                self.last = stamp
            yield without_klog_head(rest)

    def at_ns(self, near_ns: int | None) -> int | None:
        """The last stamp in Unix ns; `near_ns` gives the year to those that have none."""
        if self.observed_ns is not None or self.last is None:
            return self.observed_ns
        text = self.last.decode()
        if text[0].isdigit():
            return parse_rfc3339(text if text[-1] == "Z" or text[-6] in "+-" else f"{text}Z")
        year = datetime.fromtimestamp((near_ns or 0) / NS_PER_S, tz=UTC).year
        whole, _, rest = text.partition(".")
        try:
            at = datetime.strptime(f"{year} {whole}", "%Y %b %d %H:%M:%S").replace(tzinfo=UTC)
        except ValueError:
            return None
        return int(at.timestamp()) * NS_PER_S + int((rest + "0" * 9)[:9])


class KubectlLines:
    """Makes a watch log of what kubectl printed."""

    def __init__(self, result: ImportResult) -> None:
        self._result = result
        self._begun: set[str] = set()
        self._seen: set[str] = set()
        #: By stream and uid the file in which an object was shown last.
        self._known: dict[tuple[str, str], str] = {}
        #: By stream, uid and revision the states that were there: bundles have some twice.
        self._states: set[tuple[str, str, str]] = set()
        self._looks = Looks()
        #: By stream: objects that stand alone, with their times; whether a watch follows is open.
        self._alone: dict[str, list[tuple[orjson.Fragment, int | None]]] = {}
        self._alone_in: dict[str, set[str]] = {}
        #: By stream the list of a collector that may go on in the next record.
        self._pulled: dict[str, tuple[int | None, list[Raw]]] = {}
        self._name = ""
        self._latest_ns: int | None = None
        #: The stream that the file's name says, and when its bundle was collected.
        self._unnamed: str | None = None
        self._collected_ns: int | None = None
        self.guessed = 0
        self.kubernetes_version: str | None = None

    def lines(self, source: LineSource) -> Iterator[bytes]:
        """The lines of the watch log for one file."""
        stamps = Stamps()
        self._name = source.name
        self._unnamed = stream_named(source.name)
        self._collected_ns = source.collected_ns
        if is_yaml(source.peek(SAMPLE_BYTES)):
            yield from self._yaml(source, stamps)
            return
        if is_event_table(source.peek(SAMPLE_BYTES)):
            yield from self._table(source, stamps)
            return
        one = _only_document(source)
        if one is not None:
            source.release()
            yield from self._document(one, stamps)
            return
        yield from self._json(source, stamps)

    def _json(self, source: LineSource, stamps: Stamps) -> Iterator[bytes]:
        """The lines for documents of JSON, with YAML between them or not."""
        blocks = BlocksBetween(source.name, self._broken)
        lines = stamps.strip(source.lines())
        for number, text in documents(lines, source.name, blocks.take):
            for document in blocks.documents():
                yield from self._yaml_document(document, stamps)
            try:
                document = orjson.loads(text)
            except orjson.JSONDecodeError:
                what = HALF if has_half_a_character(text) else "what is no JSON"
                self._result.problems[f"{what} in {source.name}, left out"] += 1
                if number == 1:
                    self._result.problems[f"{source.name} begins with something else"] += 1
                continue
            if isinstance(document, dict):
                yield from self._document(document, stamps)
            else:
                self._result.problems[f"what is no object in {source.name}, left out"] += 1
        for document in blocks.documents(end=True):
            yield from self._yaml_document(document, stamps)

    def _broken(self, what: str) -> None:
        self._result.problems[f"{self._name} {what}, left out"] += 1

    def _yaml(self, source: LineSource, stamps: Stamps) -> Iterator[bytes]:
        for document in yaml_documents(source, self._broken):
            yield from self._yaml_document(document, stamps)

    def _yaml_document(self, document: Raw, stamps: Stamps) -> Iterator[bytes]:
        """The lines for a document of YAML, which can be cut anywhere and be YAML still."""
        cut = _cut(document)
        if cut:
            self._result.shapes["object"] += 1
            self._result.problems[cut] += 1
        else:
            yield from self._document(document, stamps)

    def _table(self, source: LineSource, stamps: Stamps) -> Iterator[bytes]:
        """The lines for a table in whose cells Events are as JSON."""
        for row in rows(line.decode(errors="replace") for line in source.text_lines()):
            document = in_cells(row)
            if any(True for _ in events_in(document)):
                yield from self._document(document, stamps)
            else:
                self._result.problems[f"rows of {source.name} without an Event, left out"] += 1

    def _document(self, document: Raw, stamps: Stamps) -> Iterator[bytes]:
        if otlp.is_log(document):
            for record in otlp.records(document):
                yield from self._record(record, stamps)
            stamps.observed_ns = None
            return
        shipped = list(events_in(document))
        for said, event in shipped:
            self._result.shapes["shipped Event"] += 1
            yield from self._state({"apiVersion": "v1", "kind": "Event", **event}, said, stamps)
        if shipped:
            return
        obj = document.get("object")
        kind = document.get("type")
        if isinstance(obj, dict) and isinstance(kind, str) and kind in _TYPES:
            self._result.shapes["watch event"] += 1
            yield from self._state(obj, kind, stamps)
            return
        for one in lists_within(document) or (document,):
            yield from self._object_or_list(one, stamps)

    def _object_or_list(self, document: Raw, stamps: Stamps) -> Iterator[bytes]:
        lists = split_list(document, self._unnamed)
        if lists is None:
            self._result.shapes["object"] += 1
            yield from self._state(document, "", stamps)
        elif "kind" in document:
            yield from self._list(document, lists[0], stamps)
        else:  # somebody has picked its items out of another, or left its kind out
            if not document["items"]:
                self._result.shapes["list"] += 1
                self._result.problems["empty lists that do not say of what, left out"] += 1
            for item in filter(lambda item: isinstance(item, dict), document["items"]):
                self._result.shapes["object"] += 1
                yield from self._state(item, "", stamps)

    def _list(self, document: Raw, items: dict[str, list[Raw]], stamps: Stamps) -> Iterator[bytes]:
        self._result.shapes["list"] += 1
        at_ns = self._time({"items": list(items.values())}, stamps)
        self._tell_left_out(document, items)
        for stream, given in items.items():
            found = [item for item in given if not self._leaves_manifest(stream, item)]
            if not found and (given or document["items"]):
                continue  # nobody has looked
            self._states.update((stream, *_identity(item)) for item in found)
            look = look_of(stream, found, document, self._name, at_ns, self._result.scope)
            yield from self._looks.add(stream, look)
            if stamps.last is not None:
                yield from self._looks.end(stream)

    def _record(self, record: otlp.Record, stamps: Stamps) -> Iterator[bytes]:
        """The lines for a record of OpenTelemetry's collector."""
        stamps.observed_ns = record.observed_ns
        event, body = otlp.event_of(record), record.body
        if event is not None:
            stamps.observed_ns = record.at_ns or record.observed_ns
            self._result.shapes["shipped Event"] += 1
            yield from self._state(event, "", stamps)
        elif not isinstance(body, dict) or otlp.is_log(body):
            self._result.problems["log records that hold no object, left out"] += 1
        elif isinstance(watched := body.get("object"), dict):
            if body.get("type") == otlp.PULL_END:
                return
            yield from self._end_of_pull(stream_of(watched))
            yield from self._document(body, stamps)
        elif (stream := stream_of(body)) is None:
            yield from self._document(body, stamps)
        else:
            self._result.shapes["pulled object"] += 1
            if self._leaves_manifest(stream, body):
                return
            if self._pulled.get(stream, (record.observed_ns, []))[0] != record.observed_ns:
                yield from self._end_of_pull(stream)
            self._pulled.setdefault(stream, (record.observed_ns, []))[1].append(body)

    def _end_of_pull(self, stream: str | None) -> Iterator[bytes]:
        """The lines for a list that a collector has made, of which it does not say what of."""
        if stream is None or stream not in self._pulled:
            return
        observed_ns, items = self._pulled.pop(stream)
        asked = self._result.scope
        scope = frozenset[str]() if asked is None else asked.namespaces
        self._states.update((stream, *_identity(item)) for item in items)
        look = Look(Items.of(items), scope, None, observed_ns, "")
        yield from self._looks.add(stream, look)
        yield from self._looks.end(stream)

    def _leaves_manifest(self, stream: str, obj: Raw) -> bool:
        """Whether an object is left out, as it lacks all that a server sets; counts what lacks.

        One with a status is of a server: somebody has taken the rest out.
        """
        meta = obj.get("metadata")
        lacks = [n for n in _OF_SERVER if not isinstance(meta, dict) or not meta.get(n)]
        if len(lacks) == len(_OF_SERVER) and not _has_value(obj.get("status")):
            if stream == "events":  # which nobody writes by hand
                self._result.problems[NAMELESS_EVENTS] += 1
                return True
            self._result.problems[MANIFESTS] += 1
            self._result.shapes[f"manifest in {stream}"] += 1
            return True
        if lacks:
            *but_one, last = lacks
            named = f"{', '.join(but_one)} and {last}" if but_one else last
            self._result.problems[f"objects without {named}, kept"] += 1
        return False

    def _tell_left_out(self, document: Raw, items: dict[str, list[Raw]]) -> None:
        """Count what of a list is not kept."""
        problems, all_items = self._result.problems, document["items"] or []
        kind = str(document.get("kind"))[:60].removesuffix("List")
        if not items and not all_items:
            of = f"of the kind {kind}" if kind else "that do not say of what"
            problems[f"empty lists {of}, left out"] += 1
        if sum(map(len, items.values())) == len(all_items):
            return
        for item in all_items:
            if not isinstance(item, dict):
                problems["items of lists that are no objects, left out"] += 1
            elif "kind" in item and stream_of(item) is None:
                problems[f"objects of the kind {str(item['kind'])[:60]}, left out"] += 1
            elif not items:
                problems[f"objects of the kind {kind or 'that nothing names'}, left out"] += 1

    def rest(self) -> Iterator[bytes]:
        """The lines that all files together make."""
        for stream in list(self._pulled):
            yield from self._end_of_pull(stream)
        yield from self._looks.end_all()
        if self._looks.repeated:
            self._result.problems[REPEATED] += self._looks.repeated
        asked = self._result.scope
        for stream, found in self._alone.items():
            at_ns = max((at for _, at in found if at is not None), default=None)
            # As of a list that does not say what it asked for: the namespaces that are seen in it.
            spaces = self._alone_in[stream] if asked is None else asked.namespaces
            scope = None if spaces is None or stream in CLUSTER_WIDE else sorted(spaces)
            yield from listed(stream, (text for text, _ in found), None, at_ns, scope)

    def _state(self, obj: Raw, kind: str, stamps: Stamps) -> Iterator[bytes]:
        stream = stream_of(obj) if "kind" in obj else self._unnamed
        if stream is None and (refusal := refusal_in(obj)) is not None:
            self._result.refusals.append(refusal)
            self._result.problems[refusal.left_out] += 1
            return
        if stream is None:
            other = obj.get("kind")
            which = f"of the kind {str(other)[:60]}" if other else "that name no kind"
            self._result.problems[f"objects {which}, left out"] += 1
            return
        if kind != "BOOKMARK" and self._leaves_manifest(stream, obj):
            return
        obj = kept_of(stream, obj)
        uid, revision = _identity(obj)
        if not kind and revision and (stream, uid, revision) in self._states:
            self._result.problems[REPEATED] += 1
            return
        self._states.add((stream, uid, revision))
        yield from self._looks.end(stream)
        typed = bool(kind)
        # In another file it is another look, not a watch that went on.
        known = self._known.get((stream, uid)) == self._name
        self._known[stream, uid] = self._name
        if kind != "ADDED":
            self._begun.add(stream)
        if (kind == "ADDED" and stream not in self._begun) or (not kind and not known):
            kind = "LIST"
        at_ns = self._time(obj, stamps)
        if typed or known:
            yield from self._watched(stream)
            yield frame(stream, kind or "MODIFIED", obj, at_ns)
        else:
            text = orjson.Fragment(json_text(obj))
            self._alone.setdefault(stream, []).append((text, at_ns))
            space = (
                obj["metadata"].get("namespace") if isinstance(obj.get("metadata"), dict) else ""
            )
            self._alone_in.setdefault(stream, set()).update({str(space)} if space else ())

    def _watched(self, stream: str) -> Iterator[bytes]:
        """The lines for what stood alone, now that a watch is known to go on from it."""
        for text, at_ns in self._alone.pop(stream, ()):
            yield frame(stream, "LIST", text, at_ns)

    def _time(self, obj: Raw, stamps: Stamps) -> int | None:
        """When it was received: the stamp, else no earlier than what the object tells itself."""
        own = latest_stamp(obj)
        at_ns = stamps.at_ns(own)
        if at_ns is not None:
            return at_ns
        self.guessed += 1
        if own is not None and self._collected_ns is not None and own > self._collected_ns:
            own = latest_stamp(obj, CAN_BE_AHEAD)
        if own is not None and own > (self._result.newest_ns or 0):
            self._result.newest_ns = own
        if self._collected_ns is not None and (own is None or own <= self._collected_ns):
            return self._collected_ns
        if own is not None and (self._latest_ns is None or own > self._latest_ns):
            self._latest_ns = own
        return self._latest_ns


def _cut(document: Raw) -> str:
    """What is said of a document of YAML, which can be cut anywhere, that lacks its end."""
    if "kind" not in document and isinstance(document.get("items"), list):
        return CUT_LIST
    meta = document.get("metadata")
    is_of_server = isinstance(meta, dict) and any(meta.get(name) for name in _OF_SERVER)
    is_whole = isinstance(document.get("status"), dict)
    is_cut = stream_of(document) in _WITH_STATUS and is_of_server and not is_whole
    return CUT_OBJECT if is_cut else ""


def _only_document(source: LineSource) -> Raw | None:
    """The object that a small file is as a whole; to find its end line by line takes far longer."""
    head = source.peek(_WHOLE_BYTES + 1)
    if len(head) > _WHOLE_BYTES or head.lstrip()[:1] != b"{":
        return None
    check_values(head, source.name)
    try:
        found = orjson.loads(head)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _has_value(status: Any) -> bool:
    """Whether a status says something: what writes manifests leaves it empty."""
    if isinstance(status, dict):
        return any(map(_has_value, status.values()))
    return status not in (None, "", [])


def _identity(obj: Raw) -> tuple[str, str]:
    """The uid, else the name, and the revision of an object, as far as it has them."""
    meta = obj.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    uid = meta.get("uid") or f"{meta.get('namespace')}/{meta.get('name')}"
    return str(uid), str(meta.get("resourceVersion") or "")


def is_kubectl(sample: Sample) -> bool:
    """Whether a file that begins so holds what kubectl prints."""
    if sample.is_yaml:
        return bool(sample.fields.get("apiVersion")) and bool(sample.fields.get("kind"))
    if is_event_table(sample.head):
        return True
    return any(map(_is_printed, sample.values))


def has_streams(sample: Sample, name: str) -> bool:
    """Whether a file that begins so may hold objects of a kind that a trace keeps."""
    kinds = {kind.removesuffix("List") for kind in sample.fields.get("kind", ())}
    if sample.is_yaml:
        if kinds <= {""}:
            return not sample.whole or stream_named(name) is not None
        return not kinds.isdisjoint(_KEPT_KINDS)
    if is_event_table(sample.head) or not sample.whole or not kinds.isdisjoint(_KEPT_KINDS):
        return True
    return any(_is_of_stream(value, name) for value in sample.values)


def _is_of_stream(document: Raw, name: str) -> bool:
    if otlp.is_log(document):
        return any(map(_is_kept, otlp.records(document)))
    if any(True for _ in events_in(document)):
        return True
    obj = document.get("object")
    if isinstance(obj, dict):
        return stream_of(obj) is not None
    if inner := lists_within(document):
        return any(_is_of_stream(one, name) for one in inner)
    lists = split_list(document, stream_named(name))
    if lists is not None:
        return bool(lists[0])
    return (stream_of(document) if "kind" in document else stream_named(name)) is not None


def _is_kept(record: otlp.Record) -> bool:
    """Whether a record is one that `k8sobjects` or `k8s_events` write of a kind that is kept."""
    body = record.body
    if otlp.event_of(record) is not None:
        return True
    obj = body.get("object", body) if isinstance(body, dict) else None
    return isinstance(obj, dict) and stream_of(obj) is not None


def _is_printed(document: Raw) -> bool:
    """Whether a document is one that kubectl prints: a watch event, an object, a list."""
    if otlp.is_log(document):
        return any(map(_is_kept, otlp.records(document)))
    if "api_version" in document or any(True for _ in events_in(document)):
        return "api_version" not in document  # which is Python's name for it
    obj, kind = document.get("object"), document.get("type")
    if isinstance(kind, str) and kind in _TYPES and isinstance(obj, dict):
        return "resource" not in document
    lists = split_list(document)
    if lists is not None and lists[0]:  # a program may leave the version out
        return True
    meta = document.get("metadata")
    if isinstance(meta, dict) and "kind" not in document:  # or the kind: its place may tell it
        return isinstance(meta.get("uid"), str) and ("spec" in document or "status" in document)
    return isinstance(document.get("apiVersion"), str) and (
        isinstance(document.get("kind"), str) or isinstance(document.get("items"), list)
    )
