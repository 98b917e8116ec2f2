"""One entry of an API server's audit log, read as far as an import needs it.

Bodies stay text until something asks for them: most entries of a log are of no interest, and their
bodies are most of its bytes. Fields: k8s.io/apiserver/pkg/apis/audit/v1 (audit.k8s.io/v1).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any

import msgspec
import orjson

from tracekit.base.kube.timestamps import parse_rfc3339
from tracekit.trace.format.extract import number_of
from tracekit.trace.format.model import RECEIVED_BEFORE_NS

#: Streams of a trace, by API group and resource.
STREAMS = {
    ("", "pods"): "pods",
    ("batch", "jobs"): "jobs",
    ("batch", "cronjobs"): "cronjobs",
    ("", "namespaces"): "namespaces",
    ("", "resourcequotas"): "resourcequotas",
    ("", "events"): "events",
    ("events.k8s.io", "events"): "events",
    ("coordination.k8s.io", "leases"): "leases",
}
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
LOOKS = frozenset({"get", "list"})
#: The stage at which the answer is known.
COMPLETE = "ResponseComplete"
PANIC = "Panic"
_NONE = msgspec.Raw(b"")
_NS_DIGITS = 9
_TIMES_REMEMBERED = 4096


#: Upstream: k8s.io/api/policy/v1, DisruptionBudgetCause.
_BUDGET = "DisruptionBudget"
#: As the API has it; another is no code, and the entry none.
_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]


class User(msgspec.Struct, gc=False):
    """Who asked."""

    username: str = ""


class ObjectRef(msgspec.Struct, gc=False, omit_defaults=True):
    """What was asked about."""

    resource: str = ""
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None
    api_group: str = msgspec.field(default="", name="apiGroup")
    subresource: str = ""


class Details(msgspec.Struct, gc=False):
    """`details` of a Status."""

    name: str | None = None
    uid: str | None = None
    kind: str | None = None


class Cause(msgspec.Struct, gc=False, omit_defaults=True):
    """One of the causes of a Status: more than its message says."""

    reason: str | None = None
    message: str | None = None


class AnswerDetails(Details, gc=False, omit_defaults=True):
    """The same with the causes of a refusal."""

    causes: list[Cause] | None = None


class Answer(msgspec.Struct, gc=False):
    """The Status of the answer."""

    code: _Int32 | None = None
    reason: str | None = None
    message: str | None = None
    details: AnswerDetails | None = None

    @property
    def words(self) -> str | None:
        """Its message; of a PodDisruptionBudget that is a cause, with what that one says."""
        causes = self.details.causes if self.details is not None else None
        said = [c.message for c in causes or () if c.reason == _BUDGET and c.message]
        return " ".join([*filter(None, [self.message]), *said]) if said else self.message


class Metadata(msgspec.Struct, gc=False):
    """The metadata that tells objects and revisions apart."""

    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = msgspec.field(default=None, name="resourceVersion")
    deleted: msgspec.Raw = msgspec.field(default=_NONE, name="deletionTimestamp")
    grace: msgspec.Raw = msgspec.field(default=_NONE, name="deletionGracePeriodSeconds")
    finalizers: msgspec.Raw = _NONE


class Body(msgspec.Struct, gc=False):
    """The outermost fields of a body."""

    kind: str | None = None
    metadata: Metadata | None = None
    details: Details | None = None


class BodyFacts(msgspec.Struct, array_like=True, gc=False, frozen=True):
    """What is read of an answer that is the whole object, so that few are parsed twice."""

    kind: str
    rv: int | None
    uid: str | None
    #: It is being deleted, and nothing keeps it any longer.
    is_gone: bool


def facts_of(body: Body) -> BodyFacts:
    """What the outermost fields of an object tell."""
    meta = body.metadata or Metadata()
    is_gone = len(memoryview(meta.deleted)) > 0 and not any(
        orjson.loads(keeper) for raw in (meta.finalizers, meta.grace) if (keeper := bytes(raw))
    )
    return BodyFacts(body.kind or "", number_of(meta.resource_version), meta.uid, is_gone)


class Entry(msgspec.Struct, gc=False, omit_defaults=True):
    """One audit event."""

    kind: str | None = None
    level: str = ""
    audit_id: str = msgspec.field(default="", name="auditID")
    stage: str = ""
    request_uri: str = msgspec.field(default="", name="requestURI")
    verb: str = ""
    user: User | None = None
    impersonated: User | None = msgspec.field(default=None, name="impersonatedUser")
    agent: str | None = msgspec.field(default=None, name="userAgent")
    ref: ObjectRef | None = msgspec.field(default=None, name="objectRef")
    answer: Answer | None = msgspec.field(default=None, name="responseStatus")
    request: msgspec.Raw = msgspec.field(default=_NONE, name="requestObject")
    response: msgspec.Raw = msgspec.field(default=_NONE, name="responseObject")
    received: str | None = msgspec.field(default=None, name="requestReceivedTimestamp")
    at: str | None = msgspec.field(default=None, name="stageTimestamp")
    #: Before audit.k8s.io/v1 (Kubernetes 1.11) the only time.
    timestamp: str | None = None
    #: Which API server wrote it, and what to add to its times; not of the log.
    server: int = msgspec.field(default=0, name="tracekit/server")
    shift_ns: int = msgspec.field(default=0, name="tracekit/shift")
    #: When the answer was complete and when the request had come, by that server's clock, once it
    #: was asked; not of the log.
    times: tuple[int | None, int | None] | None = msgspec.field(default=None, name="tracekit/times")
    #: What its answer tells, if that is the whole object; not of the log.
    facts: BodyFacts | None = msgspec.field(default=None, name="tracekit/told")

    @property
    def stream(self) -> str | None:
        """The stream that the entry belongs to, if any."""
        ref = self.ref
        return None if ref is None else STREAMS.get((ref.api_group, ref.resource))

    @property
    def code(self) -> int | None:
        """The HTTP status of the answer."""
        return self.answer.code if self.answer is not None else None

    @property
    def at_ns(self) -> int | None:
        """When the answer was complete, Unix ns."""
        at_ns = (self.times or self.read_times())[0]
        return None if at_ns is None else at_ns + self.shift_ns

    @property
    def received_ns(self) -> int | None:
        """When the request had come, Unix ns."""
        received_ns = (self.times or self.read_times())[1]
        return None if received_ns is None else received_ns + self.shift_ns

    def read_times(self) -> tuple[int | None, int | None]:
        """Parse them, once: rows and their places are made of them again and again."""
        at_ns, received_ns = parse_time(self.at), parse_time(self.received)
        if not at_ns or not received_ns:
            only_ns = parse_time(self.timestamp)
            at_ns, received_ns = at_ns or only_ns, received_ns or only_ns
        self.times = at_ns, received_ns
        return self.times

    @property
    def username(self) -> str:
        """Who acted: the impersonated user if there is one."""
        user = self.impersonated or self.user
        return user.username if user is not None else ""

    @property
    def dry_run(self) -> bool:
        """Whether the request was to change nothing."""
        return "dryRun=All" in self.request_uri

    def body(self) -> Body | None:
        """The outermost fields of the answer's body."""
        return _outer(self.response)


_decode_entry = msgspec.json.Decoder(Entry).decode
_decode_body = msgspec.json.Decoder(Body).decode
_encode = msgspec.json.Encoder().encode


def decode_entry(line: bytes) -> Entry:
    """An entry, its bodies as they came.

    Raises:
        msgspec.DecodeError: It is none.
        UnicodeDecodeError: It is no text; what decodes passes the bodies over.
    """
    if not line.isascii():
        line.decode()
    entry = _decode_entry(line)
    # What is not of the log cannot stand in it.
    entry.server = entry.shift_ns = 0
    entry.times = entry.facts = None
    return entry


@lru_cache(maxsize=_TIMES_REMEMBERED)  # each is asked for several times, close together
def parse_time(text: str | None) -> int | None:
    """An RFC 3339 time that a row can have in Unix ns, None for anything else."""
    at_ns = None if text is None else _time_of(text)
    return at_ns if at_ns is not None and 0 <= at_ns < RECEIVED_BEFORE_NS else None


def _time_of(text: str) -> int | None:
    if text[19:20] == "." and text[-1] == "Z":  # what API servers write; seconds repeat
        second: int | None = parse_rfc3339(text[:19] + "Z")
        digits = text[20:-1]
        if second is not None and len(digits) <= _NS_DIGITS and digits.isdecimal():
            return second + int(digits.ljust(_NS_DIGITS, "0"))
    return parse_rfc3339(text)


def _outer(text: msgspec.Raw) -> Body | None:
    if not memoryview(text):
        return None
    try:
        return _decode_body(text)
    except msgspec.DecodeError:
        return None


def document(text: msgspec.Raw) -> dict[str, Any] | None:
    """A body, parsed; None where there is none, or nothing that is an object."""
    view = memoryview(text)
    if not view:
        return None
    value = orjson.loads(view)
    return value if type(value) is dict else None


class _Kept(msgspec.Struct, array_like=True, gc=False):
    """An entry as it waits in a file: what was read of it, the bodies as they came."""

    level: str
    audit_id: str
    request_uri: str
    verb: str
    user: str
    agent: str | None
    ref: ObjectRef | None
    answer: Answer | None
    request: bytes
    response: bytes
    received: str | None
    at: str | None
    server: int
    times: tuple[int | None, int | None]
    facts: BodyFacts | None = None


_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(_Kept).decode


def pack_entry(entry: Entry, facts: BodyFacts | None = None) -> bytes:
    """The entry as bytes; of one whose answer is the whole object the request's body goes.

    `facts`: what that object tells.
    """
    return _pack(
        _Kept(
            entry.level,
            entry.audit_id,
            entry.request_uri,
            entry.verb,
            entry.username,
            entry.agent,
            entry.ref,
            entry.answer,
            b"" if facts is not None else bytes(memoryview(entry.request)),
            bytes(memoryview(entry.response)),
            entry.received or entry.timestamp,
            entry.at or entry.timestamp,
            entry.server,
            entry.times or entry.read_times(),
            facts,
        )
    )


def unpack_entry(data: bytes, shifts_ns: Mapping[int, int]) -> Entry:
    """The entry again, of which the answer is complete, by the one clock of all servers."""
    kept = _unpack(data)
    return Entry(
        kind="Event",
        level=kept.level,
        audit_id=kept.audit_id,
        stage=COMPLETE,
        request_uri=kept.request_uri,
        verb=kept.verb,
        user=User(kept.user),
        agent=kept.agent,
        ref=kept.ref,
        answer=kept.answer,
        request=msgspec.Raw(kept.request) if kept.request else _NONE,
        response=msgspec.Raw(kept.response) if kept.response else _NONE,
        received=kept.received,
        at=kept.at,
        server=kept.server,
        shift_ns=shifts_ns.get(kept.server, 0),
        times=kept.times,
        facts=kept.facts,
    )


def as_logged(entry: Entry) -> bytes:
    """The entry as JSON again: of all its fields those that an import reads."""
    return _encode(msgspec.structs.replace(entry, server=0, shift_ns=0, times=None, facts=None))
