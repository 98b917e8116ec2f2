"""`kcm-log`: what a kube-controller-manager wrote to its own log, klog as text or as JSON.

It is a second witness beside a record: it has no states (what it tells alone: `kcm_alone.py`). Of Jobs and CronJobs it tells

| line | kept as a row of type CALL with the verb |
|---|---|
| "Finished syncing job" (-v=4), "Re-queuing cronjob" (-v=4) | `sync`: when it began and ended, whether it wrote or not |
| "Event occurred" | `event`, with the Event's reason and message, before any is aggregated or dropped |
| the same of a FailedCreate or FailedDelete | `create` or `delete` with the code of the refusal, where its message has it |
| "Error reconciling cronjob" | `error`, with the message |

and from its head the version and the flags. Times are by the controller manager's clock; klog's text
has neither year nor zone: the year is that of the record beside it, the zone UTC, as in containers.

Formats: klog (kubernetes/klog, klog.go and textlogger), k8s.io/component-base/logs/json, the lines
of container runtimes around them, and before 1.22 sentences in the place of keys and values.
"""  # noqa: E501

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct

from tracekit.base.cron.gotext import parse_duration_ns
from tracekit.base.errors import TraceFormatError
from tracekit.base.kube.timestamps import NS_PER_S, parse_rfc3339
from tracekit.trace.format.model import STREAM_KINDS, Call, Origin
from tracekit.trace.importers import kcm_alone
from tracekit.trace.importers.containers import joined
from tracekit.trace.importers.documents import documents
from tracekit.trace.importers.frames import is_object
from tracekit.trace.importers.kcm_alone import OLD_EVENT, place_of
from tracekit.trace.importers.observation import pack, unpack
from tracekit.trace.importers.report import ImportResult
from tracekit.trace.importers.sample import Sample
from tracekit.trace.importers.source import LineSource, in_command
from tracekit.trace.importers.spill import Spill
from tracekit.trace.importers.tables import first_rows, is_table, rows

_KLOG = re.compile(
    rb"^[IWEF](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6})\s+\d+ ([\w./-]+\.go):\d+\] (.*)$",
    re.DOTALL,
)
#: Where klog's own line begins, as text or as JSON, behind what a runtime, a unit or a store puts
#: before it; so far it may stand.
_BEGIN = re.compile(rb'(?:\A|[\s=\]}])(?=[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6}\s|\{")')
_BEGIN_MAX = 2048
_STAMP = re.compile(rb"\d{4}-\d\d-\d\dT[^\s\]]+")
#: A field of `journalctl -o export`, a line each.
_FIELD = re.compile(rb"[A-Z_][A-Z\d_]*=")
_MESSAGE_FIELD = b"MESSAGE="
_DOCKER = b'{"log":"'
#: What a line begins with that is klog's, as text or as JSON.
_HEAD = re.compile(
    r"(?:\d{4}-\S+T\S+ (?:std(?:out|err) F )?)?(?:[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} |\{\"ts\":)"
)
#: How deep what ships logs may nest them: as deep as it does Events.
_NESTED_MAX = 8
#: Of a table so much is looked at.
_TABLE_BYTES = 64 * 1024
#: Blanks before a document's first sign are looked past so far.
_HEAD_BYTES = 4096
_MESSAGE = re.compile(rb'^"((?:[^"\\]|\\.)*)" ?')
#: A name is looked for from its beginning on: from each letter would take its length squared.
_PAIR = re.compile(rb'(?<![\w.-])([\w.-]+)=("(?:[^"\\]|\\.)*"|[^\s"]\S*)')
_FLAG = re.compile(r'^FLAG: --([a-z-]+)="(.*)"$')
#: Flags on which a verdict depends, and the gates.
_FLAGS = frozenset(
    {
        "kube-api-qps", "kube-api-burst", "concurrent-job-syncs", "concurrent-cron-job-syncs",
        "concurrent-ttl-after-finished-syncs",
    }
)  # fmt: skip
#: Sentences of releases before 1.22.
_OLD_SYNC = re.compile(r'^Finished syncing job "([^"]+)" \(([^)]+)\)$')
_MARKS = re.compile(
    rb"\b(?:job_controller|jobcontroller|cronjob_controller(?:v2)?|controllermanager)\.go:\d+"
    rb"|\bevent\.go:\d+\] (?:\"Event occurred\" .*\bkind=\"|Event\(v1\.ObjectReference\{Kind:\")"
    rb"(?:Cron)?Job\""
)
_SOURCE = b".go:"
_HEADS = re.compile(
    rb'(?:^|[ "=])[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6}|[\\"]?"caller[\\"]?":',
    re.MULTILINE,
)
_STREAMS = {"Job": "jobs", "CronJob": "cronjobs"}
#: By what the API server says the code of its answer; other refusals do not tell whether it wrote.
_CODES = (
    (" is forbidden: ", 403, "Forbidden"),
    ("Operation cannot be fulfilled on ", 409, "Conflict"),
    (" already exists", 409, "AlreadyExists"),
    (" is invalid: ", 422, "Invalid"),
    (" not found", 404, "NotFound"),
)
#: Of so many lines at the head of a log most are klog's.
_FIRST_LINES = 20
#: The year 2286, in ms.
_MS_MAX = 1e13
_REFUSED = {"FailedCreate": "create", "FailedDelete": "delete"}
#: A line without a year is of the one in which it lies nearest: of the twelve months before a look,
#: if that is reckoned from their middle.
_HALF_A_YEAR_NS = 182 * 86400 * NS_PER_S
_STATELESS = "the log of a controller manager has no states"


class Line(Struct, frozen=True):
    """One line: when it was written, which message it has, and its keys and values."""

    at_ns: int
    message: str
    values: Mapping[str, Any]


class KcmLogReader:
    """Reads logs of controller managers."""

    def __init__(self, scratch: Path, result: ImportResult) -> None:
        self.result = result
        #: The log, as a command names it.
        self._file = "LOG"
        self.kubernetes_version: str | None = None
        self._calls: Spill[tuple[int, int]] = Spill(scratch, "kcm", tuple[int, int])
        self._number = 0
        #: What its Events tell, where no record is beside it.
        self._events = kcm_alone.Events()

    def read(self, source: LineSource) -> None:
        """Take what a log tells of Jobs and CronJobs."""
        self._file = in_command(source.name)
        for text in _klog_lines(source):
            line = read_line(text, self._near_ns)
            if line is None:
                self.result.problems["lines that are none of klog's, left out"] += 1
                continue
            self.result.shapes["klog line"] += 1
            self._take(line)

    @property
    def _near_ns(self) -> int | None:
        """A time of its year: that of the record beside it; else it is from before the look."""
        if self.result.beside_ns is not None:
            return self.result.beside_ns[1]
        looked_ns = self.result.looked_ns
        return None if looked_ns is None else max(0, looked_ns - _HALF_A_YEAR_NS)

    def _take(self, line: Line) -> None:
        reported = self._configuration(line)
        if not self.result.beside and self.result.looked_ns is not None:
            self._take_alone(line)
            return
        call = call_of(line)
        if call is None:
            if not reported:
                self.result.problems["lines about other things, left out"] += 1
            return
        between = self.result.beside_ns
        if between is not None and not between[0] <= call.recv_ns <= between[1]:
            self.result.problems["lines from before or after the record, left out"] += 1
            return
        self.result.calls[call.origin.verb or ""] += 1
        self._number += 1
        self._calls.add((call.recv_ns, self._number), pack(call))

    def _take_alone(self, line: Line) -> None:
        event = kcm_alone.event_of(line.message, line.values)
        if event is not None:
            self._events.add(event, line.at_ns)

    def _configuration(self, line: Line) -> bool:
        """Take the version and the flags, which stand at the head of a log."""
        flag = _FLAG.match(line.message)
        if flag is not None:
            name, value = flag.groups()
            if name in _FLAGS and value.isdigit():
                self.result.controller_flags[name] = value
            return True
        version = line.values.get("version")
        if line.message == "Starting" and isinstance(version, str) and version[:1] == "v":
            self.kubernetes_version = version
            return True
        return False

    def rows(self) -> Iterator[Call]:
        """All calls in order of time.

        Raises:
            TraceFormatError: There is no record beside the log.
        """
        if len(self._events):
            self.result.not_recorded = dict.fromkeys(STREAM_KINDS, _STATELESS)
            self.result.unlisted = self.result.stateless = _STATELESS
            self.result.times = "klog's text has no year: that of the look is taken, and UTC"
            for one in self._events.calls():
                self.result.calls[one.origin.verb or ""] += 1
                self.result.streams[one.stream] += 1
                yield one
            return
        if not self.result.beside:
            raise TraceFormatError(
                "the log of a controller manager has no states of Jobs: put it beside a record of "
                f"the same time (`{beside_record(self._file)}`)"
            )
        self.result.not_recorded = dict.fromkeys(STREAM_KINDS, _STATELESS)
        self.result.unlisted = "the log of a controller manager lists nothing"
        for _, data in self._calls.sorted():
            call = unpack(data)
            if isinstance(call, Call):
                yield call


def is_kcm_log(sample: Sample) -> bool:
    """Whether a file begins as the log of a controller manager that runs the Job controllers."""
    head = sample.head
    if not sample.is_text or _SOURCE not in head:
        return False
    if not _MARKS.search(head) or not _HEADS.search(head):
        return False
    lines = [line for line in head.split(b"\n", 2 * _FIRST_LINES) if line.strip()]
    if _is_table(head[:_TABLE_BYTES]):
        return True
    if lines[0].strip() in (b"{", b"["):  # what a store answered is such a log
        if any(map(is_object, sample.values[:1])):
            return False  # a dump of a cluster, which may have one among its lists
        lines = sample.texts[:_FIRST_LINES]
    first = list(islice((inner for line in lines for inner in klog_lines(line)), _FIRST_LINES))
    return 2 * sum(read_line(line, 0) is not None for line in first) > len(first)


def _klog_lines(source: LineSource) -> Iterator[bytes]:
    """All lines of a file that may be klog's."""
    if _is_table(source.peek(_TABLE_BYTES)):
        for row in rows(line.decode(errors="replace") for line in source.text_lines()):
            found = list(_in_value(row, 0))
            yield from found or (b" ".join(cell.encode() for cell in row.values()),)
        return
    is_json = source.peek(_HEAD_BYTES).lstrip()[:1] in (b"{", b"[")
    lines = joined(source.text_lines())
    whole = (text for _, text in documents(lines, source.name)) if is_json else lines
    for text in whole:
        if text.strip():
            yield from klog_lines(text)


def klog_lines(text: bytes) -> Iterator[bytes]:
    """The lines in a line or document: itself, or those in what ships or stores logs.

    CloudWatch has them as `message`, Azure Monitor as `log` in `properties`; what a shipper calls
    them tells nothing, what they begin with does. None is looked for in an object of the API.
    """
    if _FIELD.match(text):
        yield from (text[len(_MESSAGE_FIELD) :],) if text.startswith(_MESSAGE_FIELD) else ()
        return
    if text.lstrip()[:1] not in (b"{", b"[") or text.startswith(_DOCKER):
        yield text
        return
    found = list(_in_value(_json(text), 0))
    yield from found or (text,)


def _in_value(value: Any, depth: int) -> Iterator[bytes]:
    if isinstance(value, str):
        yield from (line.encode() for line in value.splitlines() if _HEAD.match(line))
    elif depth < _NESTED_MAX and isinstance(value, list):
        if set(map(type, value)) == {int}:
            yield from _in_value(_text_of(value), depth + 1)
            return
        for item in value:
            yield from _in_value(item, depth + 1)
    elif depth < _NESTED_MAX and isinstance(value, dict) and not is_object(value):
        for item in value.values():
            yield from _in_value(item, depth + 1)


def _text_of(numbers: list[int]) -> str:
    """What journald writes as numbers: a text with signs that are none, such as tabs."""
    try:
        return bytes(numbers).decode(errors="replace")
    except ValueError:
        return ""


def _is_table(head: bytes) -> bool:
    return is_table(head) and any(_HEAD.match(c) for r in first_rows(head) for c in r.values())


def beside_record(file: str) -> str:
    """The command that puts such a log beside a record."""
    return f"tracekit import RECORD --with {file} -o TRACE"


def read_line(text: bytes, near_ns: int | None) -> Line | None:
    """A line of klog's; None if it is none. `near_ns`: a time of its year, Unix ns."""
    stamp_ns: int | None = None
    text = text.rstrip(b"\r\n")
    if text.startswith(_DOCKER):
        kept = _json(text) or {}
        stamp_ns = parse_rfc3339(str(kept.get("time")))
        text = str(kept.get("log")).rstrip("\n").encode()
    begin = _BEGIN.search(text, 0, _BEGIN_MAX)
    if begin is None:
        return None
    stamp = _STAMP.search(text, 0, begin.end())
    if stamp is not None:
        stamp_ns = parse_rfc3339(stamp[0].decode())
    text = text[begin.end() :]
    if text[:1] == b"{":
        return _json_line(text)
    found = _KLOG.match(text)
    if found is None:
        return None
    month, day, hour, minute, second, micro = (int(part) for part in found.groups()[:6])
    clock = (month, day, hour, minute, second)
    at_ns = _dated(clock, stamp_ns if stamp_ns is not None else near_ns)
    return None if at_ns is None else _text_line(at_ns + micro * 1000, found.group(8))


def _json(text: bytes) -> dict[str, Any] | None:
    try:
        found = orjson.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _json_line(text: bytes) -> Line | None:
    found = _json(text)
    if found is None or not isinstance(found.get("msg"), str):
        return None
    stamp = found.get("ts")
    at_ns = None
    if isinstance(stamp, str):
        at_ns = parse_rfc3339(stamp)
    elif isinstance(stamp, int | float) and 0 <= stamp < _MS_MAX:
        at_ns = round(stamp * 1000) * 1000  # component-base writes ms, with a fraction
    return None if at_ns is None else Line(at_ns, found["msg"], found)


def _dated(clock: tuple[int, int, int, int, int], near_ns: int | None) -> int | None:
    """A time without a year: the one that is nearest."""
    month, day, hour, minute, second = clock
    if near_ns is None:
        near_ns = 0
    year = datetime.fromtimestamp(near_ns / NS_PER_S, tz=UTC).year
    best: int | None = None
    for candidate in (year - 1, year, year + 1):
        try:
            at = datetime(candidate, month, day, hour, minute, second, tzinfo=UTC)
        except ValueError:
            continue
        at_ns = int(at.timestamp()) * NS_PER_S
        if best is None or abs(at_ns - near_ns) < abs(best - near_ns):
            best = at_ns
    return best


def _text_line(at_ns: int, rest: bytes) -> Line:
    quoted = _MESSAGE.match(rest)
    if quoted is None:
        return Line(at_ns, rest.decode(errors="replace"), {})
    values = {
        name.decode(): _unquoted(value) for name, value in _PAIR.findall(rest[quoted.end() :])
    }
    return Line(at_ns, _unquoted(b'"' + quoted.group(1) + b'"'), values)


def _unquoted(value: bytes) -> str:
    if value[:1] == b'"':
        try:
            return str(orjson.loads(value))
        except ValueError:  # Go quotes what is not printable otherwise
            value = value[1:-1]
    return value.decode(errors="replace")


def call_of(line: Line) -> Call | None:
    """The row for a line; None if it tells nothing of a Job or CronJob."""
    message, values = line.message, line.values
    match message:
        case "Finished syncing job":
            found = _sync(line, "jobs", values.get("key"), values.get("elapsed"))
        case "Re-queuing cronjob":
            found = _sync(line, "cronjobs", values.get("cronjob"), None)
        case "Event occurred":
            kind, reason = str(values.get("kind")), str(values.get("reason"))
            about = place_of(values.get("object"))
            found = _event(line, kind, about, reason, str(values.get("message")))
        case "Error reconciling cronjob":
            about = place_of(values.get("cronjob"))
            found = _call(line, "cronjobs", about, "error", str(values.get("err")))
        case _:
            found = _old_call(line)
    return found


def _old_call(line: Line) -> Call | None:
    """The same of the sentences that releases before 1.22 wrote."""
    old = _OLD_SYNC.match(line.message)
    if old is not None:
        return _sync(line, "jobs", old[1], old[2])
    old = OLD_EVENT.match(line.message)
    if old is not None:
        return _event(line, old[1], (old[2], old[3]), old[5], old[6])
    return None


def _sync(line: Line, stream: str, key: Any, elapsed: Any) -> Call | None:
    began_ns = None
    if elapsed is not None:
        try:
            began_ns = line.at_ns - parse_duration_ns(str(elapsed))
        except ValueError:
            began_ns = None
    return _call(line, stream, place_of(key), "sync", "", began_ns=began_ns)


def _event(
    line: Line, kind: str, about: tuple[str, str] | None, reason: str, message: str
) -> Call | None:
    """An Event, or the refused request that it tells of."""
    stream = _STREAMS.get(kind)
    if stream is None:
        return None
    verb, answer = _REFUSED.get(reason), _answer(message)
    if verb is None or answer is None:
        return _call(line, stream, about, "event", message, reason=reason)
    refused = "pods" if stream == "jobs" else "jobs"
    code, why = answer
    return _call(line, refused, about, verb, message, code=code, reason=why, owner=stream)


def _answer(message: str) -> tuple[int, str] | None:
    return next(((code, why) for words, code, why in _CODES if words in message), None)


def _call(
    line: Line,
    stream: str,
    about: tuple[str, str] | None,
    verb: str,
    message: str,
    *,
    code: int | None = None,
    reason: str | None = None,
    began_ns: int | None = None,
    owner: str | None = None,
) -> Call | None:
    if about is None:
        return None
    space, name = about
    of = owner or stream
    return Call(
        stream,
        line.at_ns,
        orjson.dumps({"msg": line.message, **line.values}),
        Origin(not_before_ns=began_ns, verb=verb),
        namespace=space,
        name=name if owner is None else None,
        job=name if of == "jobs" else None,
        cronjob=name if of == "cronjobs" else None,
        code=code,
        reason=reason,
        message=message or None,
    )
