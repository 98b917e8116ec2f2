"""`tracekit import audit`: an API server's audit log becomes a trace.

Three passes, each bounded in memory however long the log is: entries that matter are sorted by
object; each object's states are worked out; rows are sorted by time and handed on. Entries may come
in any order, from several servers, and more than once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from heapq import heappop, heappush
from itertools import groupby
from pathlib import Path
from zlib import crc32

import msgspec
import orjson

from tracekit.base.errors import TraceFormatError
from tracekit.base.json_text import json_text
from tracekit.base.kube.leases import CONTROLLER_MANAGER_LEASE
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.numbers import whole_number
from tracekit.trace.format.extract import number_of
from tracekit.trace.format.model import STREAM_KINDS, Call, Gap, RowType
from tracekit.trace.importers.audit.calls import call_of
from tracekit.trace.importers.audit.columns import APART
from tracekit.trace.importers.audit.encoded import parsed_fields
from tracekit.trace.importers.audit.entry import (
    COMPLETE,
    LOOKS,
    PANIC,
    WRITES,
    BodyFacts,
    Entry,
    decode_entry,
    document,
    facts_of,
    pack_entry,
    unpack_entry,
)
from tracekit.trace.importers.audit.objects import Step, steps_of
from tracekit.trace.importers.audit.placing import placed
from tracekit.trace.importers.audit.refusals import Refusals
from tracekit.trace.importers.audit.revisions import RevisionClock
from tracekit.trace.importers.audit.texts import texts
from tracekit.trace.importers.audit.wrappers import is_bare, unwrap, unwrap_value
from tracekit.trace.importers.observation import Observation, pack, unpack
from tracekit.trace.importers.report import ImportResult
from tracekit.trace.importers.source import LineSource
from tracekit.trace.importers.spill import Spill

_ObjectKey = tuple[str, str, str, int, str]
_TimeKey = tuple[int, int, int]
#: What an API server begins each line with; in a text within an event its quotes are escaped.
_BEGINS = b'{"kind":"Event","apiVersion":"audit.k8s.io/'
_BAD_REQUEST = 400
#: What is said of entries that are not whole, in a line with others that are.
_CUT_WITHIN = "audit entries that end within a line, left out"
#: Clocks that differ by less are put right without a word.
_TOLD_SKEW_NS = NS_PER_S // 10
#: Of servers whose entries nothing tells apart so much is borne: bounds are wider by it.
_MIXED_NS = NS_PER_S
#: What API servers put into the names of files that they rotate, and what compresses them.
_ROTATED = re.compile(r"-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(\.\d+)?|\.(gz|zst|bz2)$")
_NULL_MESSAGE = re.compile(rb'"MESSAGE" ?: ?null')
#: Unseen writes so close together are one gap.
_GAP_NS = 1_000_000_000
#: From this minor version on the answer to a DELETE has the deletion's revision.
_TELLS_DELETION_MINOR = 27


class AuditReader:
    """Reads audit logs and hands out rows in order of time."""

    def __init__(self, scratch: Path, result: ImportResult) -> None:
        self.result = result
        result.unlisted = "an audit log does not list what was there when it begins"
        self._entries: Spill[_ObjectKey] = Spill(scratch, "entries", _ObjectKey)  # type: ignore[arg-type]
        self._rows: Spill[_TimeKey] = Spill(scratch, "rows", _TimeKey)  # type: ignore[arg-type]
        self._clock = RevisionClock(scratch)
        self._levels: Counter[str] = Counter()
        self._agents: Counter[str] = Counter()
        self._stages: Counter[str] = Counter()
        self._of_batch = 0
        self._written: Counter[str] = Counter()
        self._refusals = Refusals()
        self._unseen: dict[str, list[tuple[int, int]]] = {}
        self._renewals = 0
        self._servers: dict[str, int] = {}
        self._server = 0
        self.entries = 0

    @property
    def kubernetes_version(self) -> str | None:
        """The version that the control plane's own requests name most often."""
        return next((version for version, _ in self._agents.most_common(1)), None)

    # First pass.

    def read(self, source: LineSource) -> None:
        """Take every document of a file; what is no audit entry is counted."""
        strange = cut = 0
        self._server = self._servers.setdefault(server_of(source.name), len(self._servers))

        def broken(what: str) -> None:
            self.result.problems[f"{source.name} {what}, left out"] += 1

        for text in texts(source, broken, self._takes):
            try:
                found = unwrap(text) if isinstance(text, bytes) else unwrap_value(text)
                strange += not self._take(found)
            except ValueError:
                strange += 1
            cut += isinstance(text, bytes) and _NULL_MESSAGE.search(text) is not None
        if source.fragment and self._takes_last(source.fragment):
            source.ends_whole()
        if cut:
            self.result.problems[
                "journal entries whose MESSAGE was left out, being long (journalctl --all has it)"
            ] += cut
        if strange - cut > 0:
            strange -= cut
            self.result.problems[f"lines of {source.name} without an audit entry"] += strange

    def _takes_last(self, line: bytes) -> bool:
        """Take the event of a last line without a line break; whether it has one."""
        if line.lstrip()[:1] in (b"{", b"["):
            return False  # what stands around the event was cut
        try:
            return self._take(unwrap(line))
        except ValueError:
            return False

    def _takes(self, line: bytes) -> bool:
        """Take a line that is an event and nothing else, as those of API servers are."""
        entry = _bare_entry(line)
        if entry is None and line.startswith(_BEGINS) and line.find(_BEGINS, 1) > 0:
            return self._takes_whole_ones(line)
        if entry is None:
            return False  # what is wrong with it is told where documents are looked for
        self.result.shapes["audit"] += 1
        self._entry(entry)
        return True

    def _takes_whole_ones(self, line: bytes) -> bool:
        """Take those of several events in a line: one of a server that was killed has no end.

        The next server goes on in the line that it had begun.
        """
        found = [_bare_entry(_BEGINS + rest) for rest in line.split(_BEGINS)[1:]]
        if found[-1] is None:
            return False
        whole = [entry for entry in found if entry is not None]
        if cut := len(found) - len(whole):
            self.result.problems[_CUT_WITHIN] += cut
        for entry in whole:
            self.result.shapes["audit"] += 1
            self._entry(entry)
        return True

    def _take(self, found: Iterable[tuple[str, bytes]]) -> bool:
        """Take the events of a line or document; whether it held any."""
        any_found = False
        for shape, text in found:
            any_found = True
            if not text:
                self.result.problems[_CUT_WITHIN] += 1
                continue
            try:
                entry = _with_fields_parsed(text)
            except msgspec.ValidationError as error:
                self.result.problems[f"audit entries of an unknown form ({error})"] += 1
                continue
            self.result.shapes[shape] += 1
            self._entry(entry)
        return any_found

    def _entry(self, entry: Entry) -> None:
        self.entries += 1
        entry.server, entry.shift_ns, entry.times = self._server, 0, None
        self._stages[entry.stage] += 1
        self._of_batch += entry.ref is not None and entry.ref.api_group == "batch"
        if entry.stage not in (COMPLETE, PANIC):
            self.result.calls[f"at stage {entry.stage}, left out"] += 1
            return
        version = _control_plane_version(entry.agent)
        if version is not None:
            self._agents[version] += 1
        at_ns = entry.at_ns
        if at_ns is None:
            self.result.problems["audit entries without a time that a row can have, left out"] += 1
            return
        stream = entry.stream
        wanted = entry.verb in WRITES or (entry.verb in LOOKS and len(memoryview(entry.response)))
        if stream is None or not wanted or entry.ref is None:
            self.result.calls["about other things, left out"] += 1
            return
        if entry.dry_run:
            self.result.calls["dry runs, left out"] += 1
            return
        if entry.verb in WRITES:
            self._levels[entry.level] += 1
            self._written[stream] += 1
            self._refusals.note(stream, entry)
        if stream == "events":
            body = entry.body()
            tells = body is not None and body.kind == "Event" and body.metadata is not None
            facts = facts_of(body) if body is not None and tells else None
            self._later(stream, entry, entry.audit_id, facts)
        elif entry.verb in ("list", "deletecollection"):
            self._collection(stream, entry)
        else:
            self._object(stream, entry)

    def _object(self, stream: str, entry: Entry) -> None:
        body = entry.body()
        meta = body.metadata if body is not None else None
        ref = entry.ref
        assert ref is not None  # noqa: S101 - the caller looked
        name = ref.name or (meta.name if meta is not None and meta.resource_version else None)
        namespace = ref.namespace or (meta.namespace if meta is not None else None) or ""
        if stream == "namespaces":
            namespace = ""
        at_ns = entry.at_ns or 0
        if stream == "leases" and name != CONTROLLER_MANAGER_LEASE:
            self.result.calls["about other things, left out"] += 1
            return  # of nodes and others: too many to keep, and they tell nothing
        if not name:
            self._later(stream, entry, "")
            return
        if body is not None and meta is not None and (entry.code or 0) < _BAD_REQUEST:
            revision = number_of(meta.resource_version)
            if revision is not None and entry.verb in WRITES and body.kind in _WITH_REVISION:
                self._clock.learn(
                    revision,
                    entry.received_ns or at_ns,
                    at_ns,
                    crc32((meta.uid or name).encode()),
                    server=self._server,
                    created=entry.verb == "create",
                )
        whole = body is not None and body.kind == STREAM_KINDS[stream]
        packed = pack_entry(entry, facts_of(body) if whole and body is not None else None)
        self._entries.add((stream, namespace, name, at_ns, entry.audit_id), packed)

    def _later(self, stream: str, entry: Entry, name: str, facts: BodyFacts | None = None) -> None:
        """What is told for itself, once it is known by how much the servers' clocks differ."""
        key = (stream, "", name, entry.at_ns or 0, entry.audit_id)
        self._entries.add(key, pack_entry(entry, facts))

    def _collection(self, stream: str, entry: Entry) -> None:
        """A list that was read or deleted: one entry for each object that it names."""
        listed = document(entry.response)
        items = listed.get("items") if listed is not None else None
        if type(items) is not list:
            if entry.verb != "list":
                self._later(stream, entry, "")
            return
        kind = STREAM_KINDS[stream]
        for item in items:
            meta = item.get("metadata") if type(item) is dict else None
            if type(meta) is not dict or type(meta.get("name")) is not str:
                continue
            verb = "get" if entry.verb == "list" else "delete"
            answer = {**item, "kind": kind}
            if verb == "delete":
                details = {"uid": meta.get("uid"), "name": meta["name"]}
                answer = {"kind": "DeletedItem", "details": details}
            assert entry.ref is not None  # noqa: S101 - the caller looked
            one = msgspec.structs.replace(
                entry,
                verb=verb,
                ref=msgspec.structs.replace(entry.ref, name=meta["name"]),
                response=msgspec.Raw(json_text(answer)),
            )
            at_ns = entry.at_ns or 0
            namespace = str(meta.get("namespace") or "")
            packed = pack_entry(one)
            self._entries.add((stream, namespace, meta["name"], at_ns, entry.audit_id), packed)

    def _event(self, entry: Entry) -> None:
        """Events tell themselves where their bodies are logged; nothing has to be worked out."""
        rv = entry.facts.rv if entry.facts is not None else None
        if entry.facts is None:
            obj = document(entry.response)  # of another form than the API's, if it is an Event
            meta = obj.get("metadata") if obj is not None else None
            if obj is None or obj.get("kind") != "Event" or type(meta) is not dict:
                name = entry.ref.name if entry.ref is not None else None
                if name is not None and name.startswith(CONTROLLER_MANAGER_LEASE + "."):
                    self._call("events", entry, None, "an Event about who leads, without its body")
                return
            rv = number_of(meta.get("resourceVersion"))
        row_type = RowType.ADDED if entry.verb == "create" else RowType.MODIFIED
        raw = bytes(memoryview(entry.response))
        self._put(Observation("events", row_type, entry.at_ns or 0, None, raw, rv))

    # Second pass.

    def rows(self) -> Iterator[Observation | Call | Gap]:
        """Everything that the log tells, in order of time."""
        clash = self._clock.settle()
        if clash:
            raise TraceFormatError(
                f"the logs are of two clusters, or of one whose etcd was restored in between: "
                f"revision {clash} is that of two objects; import each into a trace of its own"
            )
        self._tell_clocks()
        for (stream, _, name), group in groupby(self._entries.sorted(), lambda item: item[0][:3]):
            if stream == "events" or not name:
                for entry in self._once(group):
                    self._nameless(stream, entry)
            else:
                self._states(stream, self._by_one_clock(self._once(group)))
        self._judge_levels()
        gaps = sorted(self._gaps(), key=lambda gap: gap.until_ns or 0)
        last = b""
        for (at_ns, _, _), data in self._rows.sorted():
            if data == last:
                self.result.calls["logged twice, left out"] += 1
                continue
            last = data
            while gaps and (gaps[0].until_ns or 0) <= at_ns:
                yield gaps.pop(0)
            yield unpack(data)
        yield from gaps

    def _once(self, group: Iterable[tuple[_ObjectKey, bytes]]) -> Iterator[Entry]:
        """The entries of a group, each once; of those logged twice the one that tells more."""
        last: tuple[int, str] | None = None
        held = b""
        for (_, _, _, at_ns, audit_id), data in group:
            if last == (at_ns, audit_id):
                self.result.calls["logged twice, left out"] += 1
                held = max(held, data, key=len)
                continue
            if last is not None:
                yield unpack_entry(held, self._clock.shifts_ns)
            last, held = (at_ns, audit_id), data
        if last is not None:
            yield unpack_entry(held, self._clock.shifts_ns)

    def _tell_clocks(self) -> None:
        """Say which API servers' clocks were put right, and what cannot be."""
        names = {number: name for name, number in self._servers.items()}
        for server, shift_ns in self._clock.shifts_ns.items():
            if abs(shift_ns) >= _TOLD_SKEW_NS:
                self.result.remarks.append(
                    f"the clock of the API server of {names[server]} was "
                    f"{abs(shift_ns) / NS_PER_S:.3f} s {'behind' if shift_ns > 0 else 'ahead'}, by "
                    "the revisions that it gave out: its times were put right"
                )
        apart_ns = self._clock.mixed_ns
        if apart_ns > _MIXED_NS:
            raise TraceFormatError(
                f"one file holds the log of several API servers whose clocks differ by "
                f"{apart_ns / NS_PER_S:.1f} s or more, so nothing tells the order of what they did:"
                " give each server's log (in CloudWatch each log stream) as a file of its own, then"
                " their times are put right"
            )

    def _nameless(self, stream: str, entry: Entry) -> None:
        """An Event, or a request about no object that it names."""
        if stream == "events":
            self._event(entry)
        elif entry.verb == "deletecollection":
            self._call(stream, entry, None, "a deletion of many, logged without their names")
            self._unseen_write(stream, entry)
        else:
            refused = (entry.code or 0) >= _BAD_REQUEST
            self._call(stream, entry, None, "refused" if refused else "without a name")

    def _by_one_clock(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """The entries, which come by their own servers' clocks, by the one clock of all."""
        shifts = self._clock.shifts_ns
        if not shifts:
            yield from entries
            return
        least = min(0, *shifts.values())
        waiting: list[tuple[int, str, int, Entry]] = []
        for number, entry in enumerate(entries):
            at_ns = entry.at_ns or 0
            heappush(waiting, (at_ns, entry.audit_id, number, entry))
            # Whatever follows was written no earlier by its own clock.
            until_ns = at_ns - entry.shift_ns + least
            while waiting and waiting[0][0] < until_ns:
                yield heappop(waiting)[-1]
        while waiting:
            yield heappop(waiting)[-1]

    def _states(self, stream: str, entries: Iterable[Entry]) -> None:
        steps = steps_of(stream, entries, tells_deletion=self._tells_deletion())
        for found in placed(steps, self._clock, stream):
            if isinstance(found, Step):
                self._renewals += stream == "leases"
                self._call(stream, found.entry, found, found.why)
                if found.why.startswith("logged without"):
                    self._unseen_write(stream, found.entry)
                continue
            if found.origin.derived_from is not None:
                self.result.derived[found.origin.derived_from] += 1
            self._put(found)

    def _tells_deletion(self) -> bool:
        minor = (self.kubernetes_version or "").split(".")[1:2]
        number = whole_number(minor[0]) if minor else None
        return number is None or number >= _TELLS_DELETION_MINOR

    def _put(self, row: Observation) -> None:
        self.result.streams[row.stream] += 1
        data = pack(row)
        self._rows.add((row.recv_ns, row.rv or 0, crc32(data)), data)

    def _call(self, stream: str, entry: Entry, step: Step | None, why: str) -> None:
        call = call_of(stream, entry, step.obj if step is not None else None, why)
        self.result.calls[why if why != "refused" else f"refused with {entry.code}"] += 1
        data = pack(call)
        self._rows.add((call.recv_ns, 0, crc32(data)), data)

    def _unseen_write(self, stream: str, entry: Entry) -> None:
        at_ns = entry.at_ns or 0
        self._unseen.setdefault(stream, []).append((entry.received_ns or at_ns, at_ns))

    # What the log does not hold.

    def _gaps(self) -> Iterator[Gap]:
        for stream, times in self._unseen.items():
            if self.result.streams[stream] == 0:
                continue  # said for the whole stream
            begin: int | None = None
            end = 0
            count = 0
            for from_ns, until_ns in sorted(times):
                if begin is not None and from_ns - end > _GAP_NS:
                    yield _gap(stream, begin, end, count)
                    begin, count = None, 0
                begin = from_ns if begin is None else begin
                end, count = max(end, until_ns), count + 1
            if begin is not None:
                yield _gap(stream, begin, end, count)

    def _why_nothing(self) -> str:
        """Why a log with entries tells of no Job, CronJob or Pod what it was."""
        count = f"{self.entries:,} {'entry' if self.entries == 1 else 'entries'}"
        advice = "`tracekit manifests --audit-policy` prints a policy that has what is needed"
        if not self._stages[COMPLETE] and not self._stages[PANIC]:
            return (
                f"the log has {count} and no answer: their stages are {_stage_words(self._stages)}."
                " What was written stands in the stage ResponseComplete, which the policy "
                f"(omitStages) or who shipped the log left out; {advice}"
            )
        if (refused := self._refusals.if_all(self._written)) is not None:
            return refused
        if self._written["jobs"]:
            return (
                f"the log has {self._written['jobs']:,} writes to Jobs and no answer that shows "
                "one: all were refused, or who shipped the log cut the bodies off"
            )
        if self._of_batch:
            return (
                f"the log has {count}, {self._of_batch:,} of them about the API group batch, and "
                "no write to a Job: take the log of a time in which one was created or changed"
            )
        return (
            f"the log has {count} and none is about the API group batch: its policy leaves that "
            f"group out, or the log is of another server or time; {advice}"
        )

    def _lacks(self) -> str:
        """Why a log with writes to Jobs shows none."""
        apart = "the bodies of this log are taken apart into a field each"
        least = f"this log was written at {_least(self._levels)} level"
        return apart if self.result.shapes[APART] else least

    def _names_writers_only(self) -> str:
        """What is said of such a log alone, "" if it has the level that is needed."""
        who = f"{self._lacks()}: it names who wrote which object when, not what"
        if self.result.shapes[APART]:
            return (
                f"{who}{self._refusals.deletions()}; no object can be put together of them. Export "
                "the same entries as JSON and name that (of Cloud Logging `gcloud logging read "
                "'protoPayload.serviceName=\"k8s.io\"' --format=json` prints them)"
            )
        if _least(self._levels) == "RequestResponse":
            return ""
        return (
            f"{who}; the bodies of the answers are needed (RequestResponse), which `tracekit "
            "manifests --audit-policy` turns on"
        )

    def _tells_without_jobs(self) -> bool:
        """Whether a log that shows no Job tells of what else was recorded.

        Raises:
            TraceFormatError: It shows nothing.
        """
        result = self.result
        if not self.entries:
            return False
        if self._written["jobs"] and result.beside:
            result.remarks.append(
                f"{self._lacks()}: it tells who wrote, and the other sources what was written"
            )
            return False
        said = self._names_writers_only() if any(map(self._written.get, _WORKLOADS)) else ""
        said = said if self._refusals.if_all(self._written) is None else ""
        has_states = any(result.streams[stream] for stream in _WORKLOADS)
        if has_states and not (said and self._written["jobs"]):
            return True
        if not said or result.shapes[APART]:
            raise TraceFormatError(said or self._why_nothing())
        result.stateless = said
        return True

    def _judge_levels(self) -> None:
        result = self.result
        levels = ", ".join(f"{n} at {level or 'no'} level" for level, n in self._levels.items())
        if not result.streams["jobs"] and not self._tells_without_jobs():
            return
        for stream in STREAM_KINDS:
            if result.streams[stream] or (stream == "leases" and self._renewals):
                continue
            reason = "the log has no write of any: its policy leaves them out, or nobody wrote one"
            if self._written[stream]:
                count = self._written[stream]
                writes = "1 write" if count == 1 else f"{count:,} writes"
                reason = f"the log has {writes} of them without bodies"
            result.not_recorded[stream] = reason
        if result.shapes[APART]:
            result.remarks.append(
                f"{result.shapes[APART]:,} entries whose answers are taken apart into a field each "
                "tell who wrote, and not what"
            )
        if len(self._levels) > 1:
            result.remarks.append(f"writes that matter: {levels}")


def _with_fields_parsed(text: bytes) -> Entry:
    """An entry, also one whose fields are texts of what they hold.

    Raises:
        msgspec.DecodeError: It is none.
    """
    try:
        return decode_entry(text)
    except msgspec.ValidationError:
        event = orjson.loads(text)
        parsed = parsed_fields(event) if type(event) is dict else event
        if parsed is event:
            raise
        return decode_entry(json_text(parsed))


def _bare_entry(line: bytes) -> Entry | None:
    """The entry that a line is as a whole; None if it is none, or another form of one."""
    if not is_bare(line):
        return None
    try:
        return decode_entry(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


@lru_cache(maxsize=1024)  # few clients ask again and again
def _control_plane_version(agent: str | None) -> str | None:
    """The version in the name of a client that is a part of the control plane."""
    for name in ("kube-controller-manager/v", "kube-apiserver/v"):
        if agent is not None and agent.startswith(name):
            return "v" + agent[len(name) :].partition(" ")[0]
    return None


def _stage_words(stages: Counter[str]) -> str:
    return ", ".join(f"{count:,} {stage or 'none'}" for stage, count in stages.most_common())


def server_of(name: str) -> str:
    """The file's name without what rotation adds: files that differ in it alone have one clock."""
    return _ROTATED.sub("", name)


def _least(levels: Counter[str]) -> str:
    order = ("RequestResponse", "Request", "Metadata")
    found = [level for level in order if levels[level]]
    return found[-1] if found else "an unknown"


def _gap(stream: str, from_ns: int, until_ns: int, count: int) -> Gap:
    reason = f"{count} writes are logged without the answer's body"
    return Gap(stream, reason, from_ns=from_ns, until_ns=until_ns)


#: Streams of which one is enough for a trace.
_WORKLOADS = ("jobs", "cronjobs", "pods")
_WITH_REVISION = frozenset({*STREAM_KINDS.values(), "PartialObjectMetadata"}) - {"Event"}
