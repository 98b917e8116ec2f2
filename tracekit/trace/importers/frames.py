"""Sources that are lists and watch events at heart: made into lines of a watch log.

What a watch importer does (relists, gaps, deletions that nobody saw, order, mixed clusters) is then
done for all of them, once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, TypeGuard

import orjson

from tracekit.base.json_text import json_text
from tracekit.base.kube.timestamps import parse_rfc3339
from tracekit.trace.format.model import RECEIVED_BEFORE_NS, STREAM_KINDS, WITHOUT_COLUMNS

Raw = dict[str, Any]

#: The API groups of kinds that are not in the core group alone.
_GROUPS = {
    "Job": ("batch", "extensions"),
    "CronJob": ("batch",),
    "Lease": ("coordination.k8s.io",),
    "Event": ("", "events.k8s.io"),
    # scheduling.k8s.io has a Workload as well, which says nothing of a Job that waits.
    "Workload": ("kueue.x-k8s.io",),
}
#: Where archives of OpenShift's insights operator have objects, one a file, without their kinds.
_INSIGHTS = re.compile(
    r"(?:^|/)(?:config/([a-z]+)/[^/]+/[^/]+|namespaces/[^/]+/(pods)/([^/]+)/\3)\.json$"
)
_WORDS = re.compile(r"[^a-z0-9]+")
_STREAM_OF = {kind: stream for stream, kind in {**STREAM_KINDS, **WITHOUT_COLUMNS}.items()}
_METADATA = frozenset(
    {"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
     "generation", "labels", "ownerReferences", "finalizers"}
)  # fmt: skip
#: What is kept of these: the pods that a Workload repeats, and the images and addresses of a node,
#: have words in them that tell nothing here.
_PARTS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "workloads": {
        "metadata": _METADATA,
        "spec": frozenset({"active", "queueName", "priority"}),
        "status": frozenset({"conditions", "admissionChecks", "requeueState"}),
    },
    "nodes": {
        "metadata": _METADATA,
        "spec": frozenset({"unschedulable", "taints"}),
        "status": frozenset({"conditions"}),
    },
}


def is_object(value: Any) -> bool:
    """Whether a value is an object of the API: it names its version and its kind."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("apiVersion"), str)
        and isinstance(value.get("kind"), str)
    )


def stream_of(obj: Mapping[str, Any]) -> str | None:
    """The stream that an object belongs to by its API group and kind; None for all others.

    Kinds of one name are in many groups: audit.k8s.io has an Event, batch.volcano.sh a Job. An item
    of a typed list names neither, so a missing apiVersion says nothing against it.
    """
    kind, version = obj.get("kind"), obj.get("apiVersion")
    if not isinstance(kind, str):
        return None
    if isinstance(version, str):
        group = version.rpartition("/")[0]
        if group not in _GROUPS.get(kind, ("",)):
            return None
    return _STREAM_OF.get(kind)


def kept_of(stream: str, obj: Raw) -> Raw:
    """What of an object of a stream is kept: all of it, but of a Workload or a Node."""
    kept = _PARTS.get(stream)
    if kept is None:
        return obj
    parts = {
        part: {name: one for name, one in obj[part].items() if name in names}
        for part, names in kept.items()
        if isinstance(obj.get(part), dict)
    }
    wanted = ("apiVersion", "kind", *kept)
    return {name: parts.get(name, one) for name, one in obj.items() if name in wanted}


def stream_named(name: str) -> str | None:
    """The stream that a file or its folder is named after, as `kubectl` and bundles name them.

    It is asked only about what does not name its kind itself: an empty list, items of old bundles.
    """
    plain_name = name.replace("\\", "/")
    gathered = _INSIGHTS.search(plain_name)
    *folders, last = plain_name.split("/")
    if gathered is not None:
        last, folders = gathered[1] or gathered[2], []
    # sos names a file after its command: kubectl_get_-o_json_--namespace_shop_jobs.
    words = last.rpartition("_")[2] if "_get_" in last else last.partition(".")[0]
    for part in (words, *reversed(folders[-1:])):
        plain = part.lower().replace("-", "")
        found = plain if plain.endswith("s") else f"{plain}s"
        if found in STREAM_KINDS:
            return found
    # By hand people add what they asked for: jobs-prod.json, shop_pods.yaml.
    named = {word for word in _WORDS.split(last.lower()) if word in STREAM_KINDS}
    return named.pop() if len(named) == 1 else None


def frame(stream: str, row_type: str, obj: Any, recv_ns: int | None) -> bytes:
    """One line of a watch log."""
    envelope: Raw = {"recv": recv_ns} if can_be_received(recv_ns) else {}
    text = orjson.Fragment(json_text(obj))
    return orjson.dumps({**envelope, "resource": stream, "type": row_type, "object": text})


def listed(
    stream: str,
    items: Iterable[Raw | orjson.Fragment],
    revision: str | None,
    recv_ns: int | None,
    scope: list[str] | None = None,
) -> Iterator[bytes]:
    """The lines of one list, of all namespaces or of those in its scope."""
    bound: Raw = {"resourceVersion": revision} if revision else {}
    yield frame(
        stream, "LIST_BEGIN", bound if scope is None else {**bound, "scope": scope}, recv_ns
    )
    for item in items:
        yield frame(stream, "LIST", item, recv_ns)
    yield frame(stream, "LIST_END", bound, recv_ns)


def split_list(
    document: Mapping[str, Any], unnamed: str | None = None
) -> tuple[dict[str, list[Raw]], str | None] | None:
    """The items of a List by stream, and its revision; None if the document is no list.

    `unnamed`: the stream of a list and of items that do not name their kind.
    """
    items, kind = document.get("items"), document.get("kind")
    if items is None and "items" in document and kind is not None:
        items = []  # as `kubectl cluster-info dump` prints an empty list
    if kind is None and "kind" not in document:
        kind, unnamed = "List", None  # of whoever took items out of one; those name their kinds
    if not isinstance(items, list) or not isinstance(kind, str) or not kind.endswith("List"):
        return None
    found: dict[str, list[Raw]] = {}
    own = _listed_stream(document, kind.removesuffix("List"))
    if kind == "List" and not items:
        own = unnamed
    if own is not None:
        found[own] = []
    for item in items:
        if isinstance(item, dict):
            stream = stream_of(item) if "kind" in item else own or unnamed
            if stream is not None:
                found.setdefault(stream, []).append(kept_of(stream, item))
    meta = document.get("metadata")
    revision = meta.get("resourceVersion") if isinstance(meta, dict) else None
    return found, revision if isinstance(revision, str) and revision else None


def lists_within(document: Mapping[str, Any]) -> list[Raw]:
    """A list of lists, as who puts outputs together makes one: each by itself; [] if it is none."""
    found: list[Raw] = []
    waiting: list[Mapping[str, Any]] = [document]
    while waiting:
        outer = waiting.pop()
        items = outer["items"] if _is_list(outer) else []
        inner = [item for item in items if _is_list(item)]
        if not inner:
            found.append(dict(outer))
            continue
        waiting += reversed(inner)
        rest = [item for item in items if not _is_list(item)]
        found += [{**outer, "items": rest}] if rest else []
    return found if len(found) > 1 or found[0] != document else []


def _is_list(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("items"), list):
        return False
    kind = value.get("kind")
    return isinstance(kind, str) and kind.endswith("List")


def _listed_stream(document: Mapping[str, Any], kind: str) -> str | None:
    """The stream of a typed list; kubectl gives some the version of its own lists, v1."""
    version = document.get("apiVersion")
    in_core = "" in _GROUPS.get(kind, ("",))
    if version == "v1" and not in_core:  # no kind of that name can be meant
        version = None
    return stream_of({"kind": kind, "apiVersion": version})


#: The end of a deletion's grace lies ahead.
_AHEAD = frozenset({"deletionTimestamp"})
#: What a controller whose clock is ahead, or a user, has written may lie ahead, too.
CAN_BE_AHEAD = _AHEAD | {"lastScheduleTime", "startTime"}
#: What a time ends with in JSON, and how many bytes the shortest has before that.
_END_OF_TIME, _TIME_BYTES = b'Z"', len("2026-11-21T05:42:45")


def latest_stamp(value: Any, but_for: frozenset[str] = _AHEAD) -> int | None:
    """The latest time that an object tells of itself, Unix ns: it was written no earlier.

    One that no row can be received at is not when anybody wrote it.

    `but_for`: the fields whose times lie, or can lie, ahead.
    """
    ahead = tuple(f'"{name}":'.encode() for name in but_for)
    pieces = json_text(value).split(_END_OF_TIME)
    found: set[bytes] = set()
    for piece, behind in pairwise(pieces):
        at = piece.rfind(b'"')
        text = piece[at + 1 :]
        if len(text) < _TIME_BYTES or text[4:5] != b"-" or behind[:1] == b":":
            continue  # no time, or the name of a field
        if not piece.endswith(ahead, 0, at) and piece[at - 1 : at] != b"\\":
            found.add(text)
    times = (parse_rfc3339(f"{text.decode()}Z") for text in found)
    return max((at for at in times if can_be_received(at)), default=None)


def can_be_received(at_ns: int | None) -> TypeGuard[int]:
    """Whether a row can have been received then."""
    return at_ns is not None and 0 <= at_ns < RECEIVED_BEFORE_NS
