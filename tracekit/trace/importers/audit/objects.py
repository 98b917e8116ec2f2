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

from tracekit.base.kube.timestamps import NS_PER_S, floor_second, format_rfc3339
from tracekit.trace.format.extract import number_of
from tracekit.trace.format.model import STREAM_KINDS, Origin, RowType
from tracekit.trace.importers.audit.entry import LOOKS, Entry, document
from tracekit.trace.importers.audit.patches import UnknownOutcomeError
from tracekit.trace.importers.audit.revisions import RevisionClock
from tracekit.trace.importers.audit.unanswered import (
    CREATE,
    base_of,
    metadata_of,
    sent,
    state_after,
    without_status,
)
from tracekit.trace.importers.observation import Observation

Raw = dict[str, Any]

BINDING = "binding"
MARK = "deletion mark"
DELETION = "deletion"
METADATA = "metadata"
REQUEST = "request"
DISRUPTION = "disruption"

#: How many entries ahead an outcome is looked for, and how many steps wait for a later revision.
_AHEAD_MAX = 1024
_WAITING_MAX = 4096
#: How many revisions of an object are remembered.
_REVISIONS_MAX = 4096
_GRACE_S = 30
_ENDED = frozenset({"Succeeded", "Failed"})
#: Subresources of which a write answers with the whole object.
_PARTS = frozenset({"", "status", "ephemeralcontainers", "resize", "finalize"})
_BAD_REQUEST = 400
_NOTES = frozenset({"resourceVersion", "managedFields", "selfLink"})
#: Their names stand in the request: nobody lets the server make them up.
_NAMED_BY_USERS = frozenset({"jobs", "cronjobs"})


@dataclass(slots=True)
class Step:
    """A row to come: a state, or a request that made none that is known."""

    entry: Entry
    type: RowType
    obj: Raw | None = None
    raw: bytes | None = None
    rv: int | None = None
    derived_from: str | None = None
    #: Choose the revision close to the following one, not to the one before.
    latest: bool = False
    #: Why a CALL made no state.
    why: str = ""


@dataclass(slots=True)
class _State:
    obj: Raw | None = None
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
    #: Revisions of those before them: an answer that comes late is of one of the last.
    revisions: deque[int | None] = field(default_factory=lambda: deque(maxlen=_REVISIONS_MAX))

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
    obj: Raw | None
    kind: str | None
    rv: int | None
    uid: str | None

    @classmethod
    def of(cls, stream: str, entry: Entry) -> _Parsed:
        obj = document(entry.response)
        kind = obj.get("kind") if obj is not None else None
        meta = metadata_of(obj)
        rv, uid = number_of(meta.get("resourceVersion")), meta.get("uid")
        if kind == "Status" and obj is not None:
            details = obj.get("details")
            uid = details.get("uid") if isinstance(details, dict) else None
        elif kind not in (STREAM_KINDS[stream], "PartialObjectMetadata"):
            obj = None
        return cls(entry, obj, kind, rv, uid if isinstance(uid, str) else None)

    @property
    def whole(self) -> bool:
        """Whether the answer is the object."""
        return self.obj is not None and self.rv is not None and self.kind not in _PARTIAL


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
    told = _tells_revision(state, body)
    if entry.verb in LOOKS:
        _look(state, body)
        return
    if told:
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
    state.steps.append(Step(entry, RowType.CALL, obj=state.obj, why=why))


def _state(
    state: _State,
    entry: Entry,
    row_type: RowType,
    obj: Raw,
    *,
    rv: int | None,
    raw: bytes | None = None,
    derived_from: str | None = None,
    latest: bool = False,
) -> None:
    uid = metadata_of(obj).get("uid")
    if state.obj is not None and state.uid != uid and row_type is not RowType.DELETED:
        # The name was given again: the object before must have gone, unseen by the log.
        gone = Step(entry, RowType.DELETED, state.obj, None, None, DELETION)
        state.steps.append(gone)
    state.steps.append(Step(entry, row_type, obj, raw, rv, derived_from, latest))
    if row_type is RowType.DELETED:
        state.ended = uid if isinstance(uid, str) else None
        state.obj, state.rv, state.uid = None, None, None
    else:
        state.obj, state.rv, state.uid = obj, rv, uid
    state.stale = False


def _unanswered(stream: str, state: _State, entry: Entry) -> None:
    """A write of which the log has the request at most."""
    body = sent(entry)
    known = None if state.stale else state.obj
    if entry.verb == "create" and stream in _NAMED_BY_USERS and isinstance(body, dict):
        state.created = entry  # the first update of it shows it, with its uid and revision
        return
    try:
        made = state_after(entry, body, known)
    except UnknownOutcomeError as error:
        state.stale, state.created = True, None
        _call(state, entry, f"logged without its answer: {error}")
        return
    base = number_of(base_of(body))
    if base is not None:
        known = _told_by_base(state, made, base)
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


def _told_by_base(state: _State, made: Raw, base: int) -> Raw | None:
    """What an update tells of the state before it: its revision, and all but its status."""
    if state.created is not None and state.obj is None:
        created, state.created = state.created, None
        _state(state, created, RowType.ADDED, without_status(made), rv=base, derived_from=CREATE)
    elif state.steps and state.obj is not None and state.steps[-1].rv is None:
        last = state.steps[-1]
        if last.obj is state.obj:
            last.rv = state.rv = base
    elif state.rv is not None and state.rv != base:
        return None  # something happened in between
    return state.obj


def _tells_revision(state: _State, body: _Parsed) -> bool:
    """Whether an answer shows the very state that was put together last, with its revision."""
    last = state.steps[-1] if state.steps else None
    if not body.whole or body.obj is None or state.rv is not None or state.obj is None:
        return False
    if last is None or last.obj is not state.obj or _bare(body.obj) != _bare(state.obj):
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
    if body.whole and body.obj is not None and (body.uid, body.rv) != (state.uid, state.rv):
        raw = bytes(memoryview(body.entry.response))
        _state(state, body.entry, RowType.LIST, body.obj, rv=body.rv, raw=raw)


def _write(state: _State, body: _Parsed) -> None:
    """A create, update or patch that was answered with an object."""
    entry, obj = body.entry, body.obj
    assert obj is not None  # noqa: S101 - the caller looked
    raw: bytes | None = bytes(memoryview(entry.response))
    derived_from = None
    known = state.obj is not None and body.uid == state.uid
    if body.kind == "PartialObjectMetadata":
        if not known or state.obj is None or state.stale:
            state.stale = True
            _call(state, entry, "only the metadata of an object of which no more is known")
            return
        obj, raw, derived_from = {**state.obj, "metadata": obj.get("metadata")}, None, METADATA
    meta = metadata_of(obj)
    if not known and body.uid is not None and body.uid == state.ended:
        _after_the_end(state, body, derived_from)
        return
    if _is_gone(meta) and known and state.obj is not None and metadata_of(state.obj) != meta:
        # The last finalizer of an object that is being deleted: the answer shows it at the revision
        # that it had before.
        last = state.steps[-1]
        if state.rv is None and last.obj is state.obj:
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
        state.steps.append(Step(entry, row_type, obj, raw, body.rv, derived_from))
        return
    _state(state, entry, row_type, obj, rv=body.rv, raw=raw, derived_from=derived_from)


def _after_the_end(state: _State, body: _Parsed, derived_from: str | None) -> None:
    """The answer to a write of an object that is known to be gone."""
    entry, obj = body.entry, body.obj
    if _is_gone(metadata_of(obj)) or state.has_revision(body.rv):
        # Of several requests that end an object each is answered with it; one has done it.
        _call(state, entry, "without effect: it was gone already")
    else:  # made before the end, and answered after it
        raw = bytes(memoryview(entry.response))
        state.steps.append(Step(entry, RowType.MODIFIED, obj, raw, body.rv, derived_from))


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
    grace_s = 0 if at_once else spec.get("terminationGracePeriodSeconds", _GRACE_S)
    mark: Raw = {
        "deletionTimestamp": format_rfc3339(floor_second(now_ns) + grace_s * NS_PER_S),
        "deletionGracePeriodSeconds": grace_s,
    }
    shown = metadata_of(following.obj) if following is not None else {}
    if "deletionTimestamp" in shown and shown.get("deletionGracePeriodSeconds"):
        mark = {name: shown.get(name) for name in mark}
    if following is not None and following.obj is not None:
        told = _with_disruption(obj, following.obj)
        if told is not obj:
            obj = _without_rv(told)
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


def placed(
    steps: Iterable[Step],
    clock: RevisionClock,
    stream: str,
) -> Iterator[Observation | Step]:
    """The rows with a revision each; requests without a state pass as they are."""
    placer = _Placer(clock, stream)
    waiting: deque[Step] = deque()  # for the next revision that is known
    for step in steps:
        if step.type is RowType.CALL or step.obj is None:
            yield step
            continue
        if step.rv is None and len(waiting) < _WAITING_MAX:
            waiting.append(step)
            continue
        while waiting:
            yield placer.place(waiting.popleft(), step.rv)
        yield placer.place(step, None)
    while waiting:
        yield placer.place(waiting.popleft(), None)


class _Placer:
    """Gives the states of one object, in their order, a revision each."""

    def __init__(self, clock: RevisionClock, stream: str) -> None:
        self._clock, self._stream = clock, stream
        self._last_rv = self._known_rv = 0

    def place(self, step: Step, following: int | None) -> Observation:
        """The row of a state; `following`: the next revision behind it that is known."""
        entry = step.entry
        at_ns = entry.at_ns or 0
        received_ns = entry.received_ns or at_ns
        low: int | None = None
        high: int | None = None
        rv, obj = step.rv, step.obj
        assert obj is not None  # noqa: S101 - the caller looked
        if rv is None:
            rv, low, high = self._chosen(step, received_ns, at_ns, following)
            obj = {**obj, "metadata": {**metadata_of(obj), "resourceVersion": str(rv)}}
        else:
            self._known_rv = max(self._known_rv, rv)
            if step.derived_from is not None:
                obj = {**obj, "metadata": {**metadata_of(obj), "resourceVersion": str(rv)}}
        self._last_rv = max(self._last_rv, rv)
        origin = Origin(
            derived_from=step.derived_from,
            rv_after=low,
            rv_before=high,
            not_before_ns=received_ns,
            actor=entry.username or None,
            actor_agent=entry.agent,
            verb=verb_of(entry),
        )
        return Observation(self._stream, step.type, at_ns, obj, step.raw, rv, origin)

    def _chosen(
        self, step: Step, received_ns: int, at_ns: int, following: int | None
    ) -> tuple[int, int, int | None]:
        """A revision, and between which it was chosen."""
        low, high = self._clock.bounds(received_ns, at_ns)
        low = max(low, self._known_rv)
        high = min(h for h in (high, following) if h is not None) if high or following else None
        if high is not None and high <= low:
            low, high = self._known_rv, following  # the clocks of several API servers disagree
        near = self._clock.likely(received_ns, at_ns)
        if step.latest and high is not None:
            near = high
        return self._clock.choose(max(low, self._last_rv), high, near=near), low, high


def verb_of(entry: Entry) -> str:
    """The verb, with the subresource if there is one."""
    sub = entry.ref.subresource if entry.ref is not None else ""
    return f"{entry.verb}/{sub}" if sub else entry.verb
