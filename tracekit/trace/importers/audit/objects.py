"""The states of one object, from the requests that were made about it.

Most writes are answered with the whole object. Four are not, and are put together from what was
known before and what the request says; each such row says what it was derived from:

| request | answer | the state |
|---|---|---|
| a pod's binding | a Status | the pod before, on the node that the request names |
| PATCH of metadata | PartialObjectMetadata | the object before, with that metadata |
| DELETE at once | the last state, or a Status | a pod's mark of deletion, then its end |
| the last finalizer taken off | the object, at the revision before | its end |

Upstream: apiserver/pkg/registry/generic/registry/store.go (Delete, updateForGracefulDeletion-
AndFinalizers, deleteWithoutFinalizers), pkg/registry/core/pod/storage (BindingREST, EvictionREST).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tracekit.base.json_text import json_text
from tracekit.base.kube.job_defaults import TERMINATION_GRACE_S
from tracekit.base.kube.timestamps import NS_PER_S, floor_second, format_rfc3339
from tracekit.trace.format.extract import number_of
from tracekit.trace.format.model import STREAM_KINDS, RowType
from tracekit.trace.importers.audit.entry import LOOKS, Entry, document
from tracekit.trace.importers.audit.patches import UnknownOutcomeError
from tracekit.trace.importers.audit.unanswered import (
    CREATE,
    base_of,
    metadata_of,
    sent,
    state_after,
    without_status,
)

Raw = dict[str, Any]

BINDING = "binding"
MARK = "deletion mark"
DELETION = "deletion"
METADATA = "metadata"
REQUEST = "request"
DISRUPTION = "disruption"

#: How many entries ahead an outcome is looked for.
_AHEAD_MAX = 1024
#: How many revisions of an object are remembered.
_REVISIONS_MAX = 4096
#: What a state that is worked out may take, in bytes: as much as a request. Upstream:
#: k8s.io/apiserver/pkg/server/config.go (MaxRequestBodyBytes). And all those of one object.
_OBJECT_BYTES_MAX = 3 << 20
_WORKED_OUT_BYTES_MAX = 256 << 20
_ENDED = frozenset({"Succeeded", "Failed"})
#: Subresources of which a write answers with the whole object.
_PARTS = frozenset({"", "status", "ephemeralcontainers", "resize", "finalize"})
_BAD_REQUEST = 400
_NOTES = frozenset({"resourceVersion", "managedFields", "selfLink"})
#: Their names stand in the request: nobody lets the server make them up.
_NAMED_BY_USERS = frozenset({"jobs", "cronjobs"})


class Held:
    """A state of the object: put together, or its text as it came, parsed only for who asks."""

    __slots__ = ("_obj", "_text", "uid")

    def __init__(self, obj: Raw | None, uid: str | None, text: msgspec.Raw | None = None) -> None:
        self._obj, self.uid, self._text = obj, uid, text

    @property
    def obj(self) -> Raw:
        """The object."""
        if self._obj is None:
            assert self._text is not None  # noqa: S101 - one of both is given
            self._obj = document(self._text) or {}
        return self._obj


@dataclass(slots=True)
class Step:
    """A row to come: a state, or a request that made none that is known."""

    entry: Entry
    type: RowType
    held: Held | None = None
    raw: bytes | None = None
    rv: int | None = None
    derived_from: str | None = None
    #: Choose the revision close to the following one, not to the one before.
    latest: bool = False
    #: Why a CALL made no state.
    why: str = ""

    @property
    def obj(self) -> Raw | None:
        """The object, as far as it is known."""
        return self.held.obj if self.held is not None else None


@dataclass(slots=True)
class _State:
    held: Held | None = None
    rv: int | None = None
    uid: str | None = None
    #: A write happened of which the log has no body: what is known is older than the object.
    stale: bool = False
    #: A creation of which the log has the request only.
    created: Entry | None = None
    #: The uid of the object that had the name before, and went.
    ended: str | None = None
    #: Steps that were made last; only of the last one more may become known.
    steps: list[Step] = field(default_factory=list)
    #: How many bytes of states were worked out from patches.
    worked_out: int = 0
    #: Revisions of those before them: an answer that comes late is of one of the last.
    revisions: deque[int | None] = field(default_factory=lambda: deque(maxlen=_REVISIONS_MAX))

    @property
    def obj(self) -> Raw | None:
        """The object as it is known."""
        return self.held.obj if self.held is not None else None

    def settled(self) -> Iterator[Step]:
        """Hand out the steps of which all is known."""
        while len(self.steps) > 1:
            step = self.steps.pop(0)
            self.revisions.append(step.rv)
            yield step

    def has_revision(self, rv: int | None) -> bool:
        """Whether one of the last steps is of that revision."""
        return any(step.rv == rv for step in self.steps) or rv in self.revisions


def steps_of(stream: str, entries: Iterable[Entry], *, tells_deletion: bool) -> Iterator[Step]:
    """What the entries about one name in one namespace say, in order of their answers.

    However many there are, only a few are held at a time. `tells_deletion`: the answer to a DELETE
    has the deletion's own revision (Kubernetes 1.27 on), not that of the last state.
    """
    state = _State()
    later = _Later(_Parsed.of(stream, entry) for entry in entries)
    while (body := later.next()) is not None:
        _take(stream, state, body, later, tells_deletion=tells_deletion)
        yield from state.settled()
    if state.created is not None:
        _call(state, state.created, "logged without its answer: nothing later tells its uid")
    yield from state.steps


class _Later:
    """The entries behind the one that is looked at; only a few kinds of request ask for them."""

    def __init__(self, entries: Iterable[_Parsed]) -> None:
        self._rest = iter(entries)
        self._ahead: deque[_Parsed] = deque()

    def next(self) -> _Parsed | None:
        """The next entry, None at the end."""
        return self._ahead.popleft() if self._ahead else next(self._rest, None)

    def whole_of(self, uid: str | None) -> _Parsed | None:
        """The next answer that is the object of that uid; not looked for too far ahead."""
        for place in range(_AHEAD_MAX):
            if place == len(self._ahead):
                body = next(self._rest, None)
                if body is None:
                    return None
                self._ahead.append(body)
            found = self._ahead[place]
            if found.whole and found.uid == uid:
                return found
        return None


@dataclass(slots=True)
class _Parsed:
    """An entry with its answer, if that is a state of the object."""

    entry: Entry
    held: Held | None
    kind: str | None
    rv: int | None
    uid: str | None
    #: It is being deleted, and nothing keeps it any longer.
    is_gone: bool

    @classmethod
    def of(cls, stream: str, entry: Entry) -> _Parsed:
        facts = entry.facts
        if facts is not None:
            held = Held(None, facts.uid, entry.response)
            return cls(entry, held, facts.kind, facts.rv, facts.uid, facts.is_gone)
        obj = document(entry.response)
        kind = obj.get("kind") if obj is not None else None
        meta = metadata_of(obj)
        rv, uid = number_of(meta.get("resourceVersion")), meta.get("uid")
        if kind == "Status" and obj is not None:
            details = obj.get("details")
            uid = details.get("uid") if isinstance(details, dict) else None
        elif kind not in (STREAM_KINDS[stream], "PartialObjectMetadata"):
            obj = None
        uid = uid if isinstance(uid, str) else None
        made = Held(obj, uid) if obj is not None else None
        return cls(entry, made, kind, rv, uid, _is_gone(meta))

    @property
    def obj(self) -> Raw | None:
        """The answer."""
        return self.held.obj if self.held is not None else None

    @property
    def whole(self) -> bool:
        """Whether the answer is the object."""
        return self.held is not None and self.rv is not None and self.kind not in _PARTIAL


_PARTIAL = frozenset({"Status", "PartialObjectMetadata"})


def _take(
    stream: str,
    state: _State,
    body: _Parsed,
    later: _Later,
    *,
    tells_deletion: bool,
) -> None:
    entry = body.entry
    if entry.code is None or entry.code >= _BAD_REQUEST:
        _call(state, entry, "refused")
        return
    facts = _tells_revision(state, body)
    if entry.verb in LOOKS:
        _look(state, body)
        return
    if facts:
        _call(state, entry, "without effect")
        return
    subresource = entry.ref.subresource if entry.ref is not None else ""
    if subresource == "binding":
        _bind(state, entry)
    elif subresource == "eviction":
        _marked(state, entry, later)
    elif entry.verb in ("delete", "deletecollection"):
        _delete(stream, state, body, later, tells_deletion=tells_deletion)
    elif subresource not in _PARTS:
        _call(state, entry, f"{subresource} of an object changes nothing of it")
    elif body.whole or body.kind == "PartialObjectMetadata":
        _write(state, body)
    else:
        _unanswered(stream, state, entry)


def _call(state: _State, entry: Entry, why: str) -> None:
    state.steps.append(Step(entry, RowType.CALL, state.held, why=why))


def _state(
    state: _State,
    entry: Entry,
    row_type: RowType,
    obj: Raw | Held,
    *,
    rv: int | None,
    raw: bytes | None = None,
    derived_from: str | None = None,
    latest: bool = False,
) -> None:
    held = obj if isinstance(obj, Held) else _held(obj)
    uid = held.uid
    if state.held is not None and state.uid != uid and row_type is not RowType.DELETED:
        # The name was given again: the object before must have gone, unseen by the log.
        gone = Step(entry, RowType.DELETED, state.held, None, None, DELETION)
        state.steps.append(gone)
    state.steps.append(Step(entry, row_type, held, raw, rv, derived_from, latest))
    if row_type is RowType.DELETED:
        state.ended = uid
        state.held, state.rv, state.uid = None, None, None
    else:
        state.held, state.rv, state.uid = held, rv, uid
    state.stale = False


def _held(obj: Raw) -> Held:
    uid = metadata_of(obj).get("uid")
    return Held(obj, uid if isinstance(uid, str) else None)


def _unanswered(stream: str, state: _State, entry: Entry) -> None:
    """A write of which the log has the request at most."""
    body = sent(entry)
    known = None if state.stale else state.obj
    if entry.verb == "create" and stream in _NAMED_BY_USERS and isinstance(body, dict):
        state.created = entry  # the first update of it shows it, with its uid and revision
        return
    try:
        made = state_after(entry, body, known)
        if entry.verb == "patch":
            _require_room(state, made)
    except UnknownOutcomeError as error:
        state.stale, state.created = True, None
        _call(state, entry, f"logged without its answer: {error}")
        return
    base = number_of(base_of(body))
    if base is not None:
        known = _built_on_base(state, made, base)
    meta = metadata_of(made)
    if known is not None and {**made, "metadata": {**meta, "resourceVersion": ""}} == _without_rv(
        known
    ):
        _call(state, entry, "without effect")
    elif known is not None and _is_gone(meta):
        _end(state, entry, known)
    else:
        row_type = RowType.MODIFIED if known is not None else RowType.LIST
        _state(state, entry, row_type, made, rv=None, derived_from=entry.verb)


def _require_room(state: _State, made: Raw) -> None:
    """Patches of a few bytes each may stand for gigabytes of states.

    Raises:
        UnknownOutcomeError: It is more than an object can hold, or all of them are too much.
    """
    size = len(json_text(made))
    state.worked_out += size
    if size > _OBJECT_BYTES_MAX:
        raise UnknownOutcomeError("the object would be larger than an API server takes")
    if state.worked_out > _WORKED_OUT_BYTES_MAX:
        raise UnknownOutcomeError("what patches made of the object is too much to be worked out")


def _built_on_base(state: _State, made: Raw, base: int) -> Raw | None:
    """What an update tells of the state before it: its revision, and all but its status."""
    if state.created is not None and state.held is None:
        created, state.created = state.created, None
        _state(state, created, RowType.ADDED, without_status(made), rv=base, derived_from=CREATE)
    elif state.steps and state.held is not None and state.steps[-1].rv is None:
        last = state.steps[-1]
        if last.held is state.held:
            last.rv = state.rv = base
    elif state.rv is not None and state.rv != base:
        return None  # something happened in between
    return state.obj


def _tells_revision(state: _State, body: _Parsed) -> bool:
    """Whether an answer shows the very state that was put together last, with its revision."""
    last = state.steps[-1] if state.steps else None
    if state.rv is not None or state.held is None or not body.whole:
        return False
    if last is None or last.held is not state.held:
        return False
    if body.obj is None or state.obj is None or _bare(body.obj) != _bare(state.obj):
        return False
    last.rv = state.rv = body.rv
    return True


def _bare(obj: Raw) -> Raw:
    """The object without what says only when and how it was written."""
    meta = {name: value for name, value in metadata_of(obj).items() if name not in _NOTES}
    return {**obj, "metadata": meta}


def _is_gone(meta: Raw) -> bool:
    """Whether nothing keeps an object of this metadata any longer: none is ever stored so."""
    kept = meta.get("finalizers") or meta.get("deletionGracePeriodSeconds")
    return "deletionTimestamp" in meta and not kept


def _look(state: _State, body: _Parsed) -> None:
    """Somebody read the object: a state whose write the log need not have."""
    if body.uid is not None and body.uid == state.ended:
        return  # answered after the end
    if body.whole and body.held is not None and (body.uid, body.rv) != (state.uid, state.rv):
        raw = bytes(memoryview(body.entry.response))
        _state(state, body.entry, RowType.LIST, body.held, rv=body.rv, raw=raw)


def _write(state: _State, body: _Parsed) -> None:
    """A create, update or patch that was answered with an object."""
    entry, held = body.entry, body.held
    assert held is not None  # noqa: S101 - the caller looked
    raw: bytes | None = bytes(memoryview(entry.response))
    derived_from = None
    known = state.held is not None and body.uid == state.uid
    if body.kind == "PartialObjectMetadata":
        if not known or state.obj is None or state.stale:
            state.stale = True
            _call(state, entry, "only the metadata of an object of which no more is known")
            return
        made = {**state.obj, "metadata": held.obj.get("metadata")}
        held, raw, derived_from = _held(made), None, METADATA
    if not known and body.uid is not None and body.uid == state.ended:
        _after_the_end(state, body, derived_from)
        return
    if (
        body.is_gone
        and known
        and state.obj is not None
        and metadata_of(state.obj) != metadata_of(held.obj)
    ):
        # The last finalizer of an object that is being deleted: the answer shows it at the revision
        # that it had before.
        last = state.steps[-1]
        if state.rv is None and last.held is state.held:
            last.rv = body.rv
        _end(state, entry, state.obj)
        return
    if known and body.rv == state.rv:
        _call(state, entry, "without effect")
        return
    row_type = RowType.MODIFIED
    if entry.verb == "create":
        row_type = RowType.ADDED
    elif not known or state.stale:
        row_type = RowType.LIST  # what led to it was not seen
    if known and state.rv is not None and body.rv is not None and body.rv < state.rv:
        # Answered later than it was made: it stands before what is known, which stays.
        state.steps.append(Step(entry, row_type, held, raw, body.rv, derived_from))
        return
    _state(state, entry, row_type, held, rv=body.rv, raw=raw, derived_from=derived_from)


def _after_the_end(state: _State, body: _Parsed, derived_from: str | None) -> None:
    """The answer to a write of an object that is known to be gone."""
    entry = body.entry
    if body.is_gone or state.has_revision(body.rv):
        # Of several requests that end an object each is answered with it; one has done it.
        _call(state, entry, "without effect: it was gone already")
    else:  # made before the end, and answered after it
        raw = bytes(memoryview(entry.response))
        state.steps.append(Step(entry, RowType.MODIFIED, body.held, raw, body.rv, derived_from))


def _bind(state: _State, entry: Entry) -> None:
    request = document(entry.request)
    target = request.get("target") if request is not None else None
    node = target.get("name") if isinstance(target, dict) else None
    spec = state.obj.get("spec") if state.obj is not None else None
    if state.obj is None or not isinstance(spec, dict) or not isinstance(node, str):
        state.stale = state.obj is not None
        _call(state, entry, "the binding of a pod of which no more is known")
        return
    status = state.obj.get("status")
    status = dict(status) if isinstance(status, dict) else {}
    scheduled = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": format_rfc3339(floor_second(entry.received_ns or 0)),
    }
    conditions = status.get("conditions")
    others = [
        condition
        for condition in (conditions if isinstance(conditions, list) else ())
        if not (isinstance(condition, dict) and condition.get("type") == "PodScheduled")
    ]
    status["conditions"] = [*others, scheduled]
    obj = {**state.obj, "spec": {**spec, "nodeName": node}, "status": status}
    _state(state, entry, RowType.MODIFIED, obj, rv=None, derived_from=BINDING)


def _delete(
    stream: str,
    state: _State,
    body: _Parsed,
    later: _Later,
    *,
    tells_deletion: bool,
) -> None:
    entry, obj = body.entry, body.obj
    if not body.whole or obj is None:
        if stream == "namespaces" and state.obj is None and entry.ref is not None:
            # All that anybody asks of a namespace is when it began to go.
            meta = {"name": entry.ref.name, "resourceVersion": ""}
            meta["deletionTimestamp"] = format_rfc3339(floor_second(entry.received_ns or 0))
            mark = {"kind": "Namespace", "apiVersion": "v1", "metadata": meta}
            _state(state, entry, RowType.MODIFIED, mark, rv=None, derived_from=REQUEST)
            return
        if state.obj is None or (body.uid is not None and body.uid != state.uid):
            _call(state, entry, "the deletion of an object of which no more is known")
        elif body.kind == "Status" and stream != "pods":
            _end(state, entry, state.obj)  # a Status is the answer when nothing is left
        else:
            _marked(state, entry, later)
        return
    meta = metadata_of(obj)
    raw = bytes(memoryview(entry.response))
    known = state.uid == body.uid and state.obj is not None
    marked = known and metadata_of(state.obj).get("deletionTimestamp") is not None
    stays = bool(meta.get("finalizers")) or bool(meta.get("deletionGracePeriodSeconds"))
    if known and body.rv == state.rv:
        _call(state, entry, "without effect: it was being deleted already")
    elif stays or "deletionTimestamp" not in meta:
        row_type = RowType.MODIFIED if known and not state.stale else RowType.LIST
        _state(state, entry, row_type, obj, rv=body.rv, raw=raw)
    elif tells_deletion:
        if stream == "pods" and not _same_mark(state.obj if marked else None, meta):
            before = _without_rv(obj)
            row_type = RowType.MODIFIED if known and not state.stale else RowType.LIST
            _state(state, entry, row_type, before, rv=None, derived_from=MARK, latest=True)
        _state(state, entry, RowType.DELETED, obj, rv=body.rv, raw=raw)
    else:
        row_type = RowType.MODIFIED if known and not state.stale else RowType.LIST
        _state(state, entry, row_type, obj, rv=body.rv, raw=raw)
        _end(state, entry, obj)


def _same_mark(obj: Raw | None, meta: Raw) -> bool:
    """Whether the object bears this very mark of deletion already."""
    names = ("deletionTimestamp", "deletionGracePeriodSeconds")
    return obj is not None and all(metadata_of(obj).get(name) == meta.get(name) for name in names)


def _end(state: _State, entry: Entry, obj: Raw) -> None:
    _state(state, entry, RowType.DELETED, _without_rv(obj), rv=None, derived_from=DELETION)


def _without_rv(obj: Raw) -> Raw:
    return {**obj, "metadata": {**metadata_of(obj), "resourceVersion": ""}}


def _marked(state: _State, entry: Entry, later: _Later) -> None:
    """A deletion whose outcome the answer does not tell: what came later does, else the rules."""
    obj = state.obj
    if obj is None:
        _call(state, entry, "the deletion of an object of which no more is known")
        return
    meta, now_ns = metadata_of(obj), entry.received_ns or 0
    if "deletionTimestamp" in meta:
        _call(state, entry, "it was being deleted already")
        return
    following = later.whole_of(state.uid)
    spec, status = obj.get("spec"), obj.get("status")
    spec = spec if isinstance(spec, dict) else {}
    status = status if isinstance(status, dict) else {}
    at_once = status.get("phase") in _ENDED or not spec.get("nodeName")
    asked = spec.get("terminationGracePeriodSeconds")
    grace_s = 0 if at_once else asked if isinstance(asked, int) else TERMINATION_GRACE_S
    mark: Raw = {
        "deletionTimestamp": format_rfc3339(floor_second(now_ns) + grace_s * NS_PER_S),
        "deletionGracePeriodSeconds": grace_s,
    }
    shown = metadata_of(following.obj) if following is not None else {}
    if "deletionTimestamp" in shown and shown.get("deletionGracePeriodSeconds"):
        mark = {name: shown.get(name) for name in mark}
    if following is not None and following.obj is not None:
        facts = _with_disruption(obj, following.obj)
        if facts is not obj:
            obj = _without_rv(facts)
            _state(state, entry, RowType.MODIFIED, obj, rv=None, derived_from=DISRUPTION)
    marked = {**obj, "metadata": {**meta, **mark}}
    _state(state, entry, RowType.MODIFIED, _without_rv(marked), rv=None, derived_from=MARK)
    if following is None and at_once and not meta.get("finalizers"):
        _end(state, entry, marked)


def _with_disruption(obj: Raw, later: Raw) -> Raw:
    """An eviction says so in the pod's conditions before it marks the pod."""
    wanted = [c for c in _conditions(later) if c.get("type") == "DisruptionTarget"]
    if not wanted or any(c.get("type") == "DisruptionTarget" for c in _conditions(obj)):
        return obj
    status = obj.get("status")
    status = status if isinstance(status, dict) else {}
    return {**obj, "status": {**status, "conditions": [*wanted, *_conditions(obj)]}}


def _conditions(obj: Raw) -> list[Raw]:
    status = obj.get("status")
    found = status.get("conditions") if isinstance(status, dict) else None
    return [c for c in found if isinstance(c, dict)] if isinstance(found, list) else []
