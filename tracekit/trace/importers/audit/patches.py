"""Patches as an API server applies them: what a log says of a write that it has no answer to.

| patch | told by | source |
|---|---|---|
| JSON patch | it is an array | RFC 6902 |
| server-side apply | it names its kind, and the request its field manager | structured-merge-diff |
| strategic merge | a directive (`$patch`, …), or a client that sends no other | strategicpatch |
| JSON merge patch | all others | RFC 7386 |

A log does not keep the content type. Where strategic merge and merge patch differ (lists whose
elements have a key) and nothing tells which it was, the outcome is not known, and said so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tracekit.base.json_text import json_text
from tracekit.base.kube.merge_patch import merge_patched

Raw = dict[str, Any]

#: Lists of Pods, Jobs and CronJobs that are merged element by element, and by which field
#: (patchMergeKey in k8s.io/api). All other lists are replaced.
_MERGE_KEYS: Mapping[str, str] = {
    "conditions": "type",
    "podIPs": "ip",
    "hostIPs": "ip",
    "resourceClaimStatuses": "name",
    "ownerReferences": "uid",
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "schedulingGates": "name",
    "resourceClaims": "name",
    "env": "name",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
}
#: Lists of texts that are merged as sets.
_SETS = frozenset({"finalizers"})
_DIRECTIVE = "$patch"
_DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_RETAIN = "$retainKeys"
#: Clients that send strategic merge patches and no others to pods and batch.
_STRATEGIC_CLIENTS = ("kube-controller-manager/", "kubelet/", "kube-scheduler/", "kubectl/",
                      "hyperkube/", "k3s/")  # fmt: skip
_PATH_MAX = 64
#: What the copies of one JSON patch may come to, in bytes: an API server refuses more, and each
#: copy may double what was copied before. Upstream: k8s.io/apiserver/pkg/server/config.go
#: (JSONPatchMaxCopyBytes).
_COPIED_BYTES_MAX = 3 << 20
#: So many elements of a list are merged one by one, each looked for among the others.
_MERGED_MAX = 2_000


class UnknownOutcomeError(ValueError):
    """What the patch makes of the object cannot be told."""


def patched(obj: Raw, patch: Any, *, uri: str, agent: str) -> Raw:
    """The object after the patch; the object itself is not changed.

    `uri` is the request's, `agent` its client's.

    Raises:
        UnknownOutcomeError: It cannot be told what the patch does, with the reason.
    """
    if isinstance(patch, list):
        return _json_patched(obj, patch)
    if not isinstance(patch, dict):
        raise UnknownOutcomeError("the patch is neither an object nor an array")
    if _is_apply(patch, uri):
        return _applied(obj, patch, uri)
    if _has_directive(patch) or agent.startswith(_STRATEGIC_CLIENTS):
        return _strategic(obj, patch)
    merged: Raw = merge_patched(obj, patch)
    if merged != _strategic(obj, patch):
        raise UnknownOutcomeError("the log does not keep whether it was a strategic merge patch")
    return merged


# Strategic merge patch.


def _has_directive(value: Any) -> bool:
    if isinstance(value, dict):
        return any(
            name == _DIRECTIVE or name.startswith("$") or _has_directive(inner)
            for name, inner in value.items()
        )
    return isinstance(value, list) and any(_has_directive(item) for item in value)


def _strategic(obj: Any, patch: Raw) -> Raw:
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _DIRECTIVE}
    if directive == "delete":
        return {}
    result = dict(obj) if isinstance(obj, dict) else {}
    retained = patch.get(_RETAIN)
    if isinstance(retained, list):
        result = {name: value for name, value in result.items() if name in retained}
    for name, value in patch.items():
        if name.startswith("$"):
            _direct(result, name, value, patch)
        elif value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            result[name] = _strategic(result.get(name), value)
        elif isinstance(value, list):
            order = patch.get(_ORDER + name)
            result[name] = _strategic_list(name, result.get(name), value, order)
        else:
            result[name] = value
    return result


def _direct(result: Raw, name: str, value: Any, patch: Raw) -> None:
    """What a directive about a list of the object asks for."""
    if name.startswith(_DELETE_FROM):
        _delete_from(result, name.removeprefix(_DELETE_FROM), value)
    elif name.startswith(_ORDER):
        plain = name.removeprefix(_ORDER)
        if plain not in patch and isinstance(result.get(plain), list):
            result[plain] = _strategic_list(plain, result[plain], [], value)


def _require_few(name: str, *lists: Any) -> None:
    if sum(len(items) for items in lists if isinstance(items, list)) > _MERGED_MAX:
        raise UnknownOutcomeError(f"{name} has more than {_MERGED_MAX:,} elements to be merged")


def _delete_from(result: Raw, name: str, values: Any) -> None:
    _require_few(name, result.get(name), values)
    left = [item for item in result.get(name) or () if item not in (values or ())]
    if left:
        result[name] = left
    else:
        result.pop(name, None)


def _strategic_list(name: str, old: Any, new: list[Any], order: Any) -> list[Any]:
    before: list[Any] = old if isinstance(old, list) else []
    if name in _SETS or name in _MERGE_KEYS:
        _require_few(name, before, new)
    if name in _SETS:
        merged = [*before, *(item for item in new if item not in before)]
        return _ordered(merged, new, before, order, lambda item: item)
    key = _MERGE_KEYS.get(name)
    if key is None or not all(isinstance(item, dict) for item in (*before, *new)):
        return new
    if any(item.get(_DIRECTIVE) == "replace" for item in new):
        return [item for item in new if _DIRECTIVE not in item]
    merged = list(before)
    for item in new:
        if key not in item:
            raise UnknownOutcomeError(f"an element of {name} in the patch lacks its {key}")
        place = next((i for i, had in enumerate(merged) if had.get(key) == item[key]), None)
        if item.get(_DIRECTIVE) == "delete":
            if place is not None:
                del merged[place]
        elif place is None:
            merged.append(_strategic({}, item))
        else:
            merged[place] = _strategic(merged[place], item)
    kept = [item for item in new if item.get(_DIRECTIVE) != "delete"]
    return _ordered(merged, kept, before, order, lambda item: item.get(key))


def _ordered(
    merged: list[Any],
    patch: Sequence[Any],
    before: Sequence[Any],
    order: Any,
    key: Callable[[Any], Any],
) -> list[Any]:
    """The merged elements: those of the patch in its order, the others where they stood.

    An element that only the server has goes first while it stood before the next one of the patch.
    """
    wanted = [key(item) for item in (order if isinstance(order, list) else patch)]
    stood = [key(item) for item in before]
    of_patch = sorted(
        (item for item in merged if key(item) in wanted), key=lambda item: wanted.index(key(item))
    )
    of_server = [item for item in merged if key(item) not in wanted]
    result: list[Any] = []
    while of_patch and of_server:
        ours, theirs = key(of_server[0]), key(of_patch[0])
        both = ours in stood and theirs in stood
        first = both and stood.index(ours) < stood.index(theirs)
        result.append((of_server if first else of_patch).pop(0))
    return [*result, *of_patch, *of_server]


# JSON patch.


def _json_patched(obj: Raw, operations: list[Any]) -> Raw:
    result: Any = _copied(obj)
    copied = 0
    for operation in operations:
        if not isinstance(operation, dict):
            raise UnknownOutcomeError("an operation of the JSON patch is no object")
        if operation.get("op") == "copy":
            copied += len(json_text(_at(result, _pointer(operation.get("from")))))
            if copied > _COPIED_BYTES_MAX:
                raise UnknownOutcomeError("the JSON patch copies more than an API server lets it")
        result = _operated(result, operation)
    if not isinstance(result, dict):
        raise UnknownOutcomeError("the JSON patch leaves no object")
    return result


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(inner) for name, inner in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _operated(document: Any, operation: Raw) -> Any:
    what, path = operation.get("op"), _pointer(operation.get("path"))
    if what in ("move", "copy"):
        origin = _pointer(operation.get("from"))
        value = _copied(_at(document, origin))
        if what == "move":
            document = _changed(document, origin, "remove", None)
        return _changed(document, path, "add", value)
    if what == "test":
        return document  # it was answered, so it held
    if what not in ("add", "replace", "remove"):
        raise UnknownOutcomeError(f"the JSON patch has the unknown operation {what!r}")
    return _changed(document, path, what, operation.get("value"))


def _pointer(text: Any) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise UnknownOutcomeError("the JSON patch has a path that is none")
    parts = [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]
    if len(parts) > _PATH_MAX:
        raise UnknownOutcomeError("the JSON patch has a path that is too deep")
    return parts


def _at(document: Any, path: Sequence[str]) -> Any:
    for part in path:
        try:
            document = document[int(part)] if isinstance(document, list) else document[part]
        except (KeyError, IndexError, ValueError, TypeError):
            raise UnknownOutcomeError("the JSON patch is not one of the object known") from None
    return document


def _changed(document: Any, path: Sequence[str], what: str, value: Any) -> Any:
    if not path:
        return value
    parent, last = _at(document, path[:-1]), path[-1]
    try:
        if isinstance(parent, list):
            _change_list(parent, last, what, value)
        elif what == "remove":
            del parent[last]
        else:
            parent[last] = value
    except (KeyError, IndexError, ValueError, TypeError):
        raise UnknownOutcomeError("the JSON patch is not one of the object known") from None
    return document


def _change_list(parent: list[Any], last: str, what: str, value: Any) -> None:
    if what == "remove":
        del parent[int(last)]
    elif what == "replace":
        parent[int(last)] = value
    elif last == "-":
        parent.append(value)
    else:
        parent.insert(int(last), value)


# Server-side apply.


def _is_apply(patch: Raw, uri: str) -> bool:
    query = uri.partition("?")[2]
    return "kind" in patch and "apiVersion" in patch and "fieldManager=" in query


def _applied(obj: Raw, patch: Raw, uri: str) -> Raw:
    """The object with what is applied; only where the manager gives nothing up with it."""
    query = dict(part.partition("=")[::2] for part in uri.partition("?")[2].split("&"))
    meta = obj.get("metadata")
    entries = meta.get("managedFields") if isinstance(meta, dict) else None
    if entries is None:
        raise UnknownOutcomeError("it was applied, and who managed which field is not known")
    for entry in entries if isinstance(entries, list) else ():
        if (
            isinstance(entry, dict)
            and entry.get("operation") == "Apply"
            and entry.get("manager") == query.get("fieldManager")
            and not _covers(patch, entry.get("fieldsV1"))
        ):
            raise UnknownOutcomeError("it was applied without fields that were applied before")
    wanted = {name: value for name, value in patch.items() if name not in ("kind", "apiVersion")}
    return _strategic(obj, wanted)


def _covers(value: Any, fields: Any) -> bool:
    """Whether all of a set of fields (fieldsV1) is in what is applied."""
    if not isinstance(fields, dict):
        return True
    for name, inner in fields.items():
        if name == ".":
            continue
        if name.startswith("f:"):
            if not isinstance(value, dict) or name[2:] not in value:
                return False
            if not _covers(value[name[2:]], inner):
                return False
        elif name.startswith(("k:", "v:")):
            return False  # of lists with keys it is not worked out
    return True
