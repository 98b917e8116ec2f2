"""The strict redaction: of an object's texts, those that a replay decides by and no others.

Every text is hashed but those listed here: identities and names (children and Events are matched by
them), times, the rules of Jobs and CronJobs, and the words of their controllers. Numbers, booleans
and the shape of the object stay. Labels are hashed name by name and value by value, the same
everywhere, so that selectors still select.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

#: Fields whose texts are kept wherever they stand (but see `_HIDDEN`).
_KEPT = frozenset(
    {
        *("apiVersion", "kind", "name", "namespace", "uid", "resourceVersion", "generateName"),
        *("creationTimestamp", "deletionTimestamp", "time", "manager", "operation"),
        *("subresource", "fieldsType", "restartPolicy", "completionMode", "schedule", "timeZone"),
        *("concurrencyPolicy", "podReplacementPolicy", "managedBy", "phase", "type", "status"),
        *("reason", "lastTransitionTime", "lastProbeTime", "startedAt", "finishedAt", "startTime"),
        *("completionTime", "lastScheduleTime", "lastSuccessfulTime", "completedIndexes"),
        *("failedIndexes", "succeededIndexes", "firstTimestamp", "lastTimestamp", "eventTime"),
        *("lastObservedTime", "component", "reportingComponent", "reportingController"),
        *("deprecatedFirstTimestamp", "deprecatedLastTimestamp", "acquireTime", "renewTime"),
        *("operator", "effect", "action", "containerName", "key", "hostname"),
        *("container", "podUID", "gap"),
    }
)
#: What stands under these is hashed, whatever its name.
_HIDDEN = frozenset(
    {
        *("env", "envFrom", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"),
        *("affinity", "nodeSelector", "hostAliases", "dnsConfig", "securityContext"),
        *("imagePullSecrets", "resourceClaims", "resourceClaimStatuses", "ports", "volumeDevices"),
        *("topologySpreadConstraints", "readinessGates", "schedulingGates", "related"),
    }
)
#: Mappings whose names are the user's, too.
_CHOSEN_NAMES = frozenset({"nodeSelector", "volumeAttributes", "options", "matchLabels"})
_QUANTITIES = frozenset({"hard", "used", "requests", "limits"})
_QUANTITY = re.compile(r"[0-9.]{1,12}[A-Za-z]{0,2}")
_TOKEN_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 (a path)
#: Labels and finalizers that controllers and the garbage collector write; their values are names.
_MACHINE_LABELS = frozenset(
    {
        *("job-name", "controller-uid", "batch.kubernetes.io/job-name"),
        *("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-completion-index"),
    }
)
_MACHINE_FINALIZERS = frozenset(
    {"batch.kubernetes.io/job-tracking", "foregroundDeletion", "orphan"}
)
_INDEX_PATHS = frozenset(
    f"metadata.{place}['batch.kubernetes.io/job-completion-index']"
    for place in ("labels", "annotations")
)
_UIDS = frozenset({"succeeded", "failed"})

Hash = Callable[[str], str]


def kept_strictly(stream: str, body: Mapping[str, Any], hashed: Hash) -> dict[str, Any]:
    """Give an object that was redacted already with all other texts hashed, too."""
    result = {name: _value(name, one, hashed) for name, one in body.items()}
    if stream == "events":
        # What a controller says was kept before, what others say was hashed.
        for name in ("message", "note"):
            if isinstance(body.get(name), str):
                result[name] = body[name]
    return result


def _value(name: str, value: Any, hashed: Hash) -> Any:
    if isinstance(value, str):
        return value if name in _KEPT else hashed(value)
    if isinstance(value, list):
        return _list(name, value, hashed)
    return _map(name, value, hashed) if isinstance(value, dict) else value


def _map(name: str, value: dict[str, Any], hashed: Hash) -> dict[str, Any]:
    special = _SPECIAL.get(name)
    if special is not None:
        return special(value, hashed)
    if name in _CHOSEN_NAMES:
        return _chosen(value, hashed)
    if name in _HIDDEN:
        return {key: _hidden(one, hashed) for key, one in value.items()}
    if name in _QUANTITIES:
        return {
            key: one if isinstance(one, str) and _QUANTITY.fullmatch(one) else _hidden(one, hashed)
            for key, one in value.items()
        }
    return {key: _value(key, one, hashed) for key, one in value.items()}


def _list(name: str, values: list[Any], hashed: Hash) -> list[Any]:
    if name == "finalizers":
        return [
            one
            if one in _MACHINE_FINALIZERS
            else _hidden(one, hashed)
            if isinstance(one, str)
            else one
            for one in values
        ]
    if name in _UIDS:
        return values
    if name in _HIDDEN:
        return [one if _is_index(one) else _hidden(one, hashed) for one in values]
    if name in {"volumes", "volumeMounts"}:
        return [_volume(one, hashed) for one in values]
    if name == "conditions":
        return [_condition(one, hashed) for one in values]
    return [_value("", one, hashed) for one in values]


def _is_index(variable: Any) -> bool:
    """Tell whether the Job controller put this variable there, for the pods of Indexed Jobs."""
    if not isinstance(variable, dict) or variable.get("name") != "JOB_COMPLETION_INDEX":
        return False
    source = variable.get("valueFrom")
    field = source.get("fieldRef") if isinstance(source, dict) else None
    path = field.get("fieldPath") if isinstance(field, dict) else None
    return path in _INDEX_PATHS and set(variable) == {"name", "valueFrom"}


def _hidden(value: Any, hashed: Hash) -> Any:
    """Hash every text below, and keep the shape."""
    if isinstance(value, str):
        return hashed(value)
    if isinstance(value, list):
        return [_hidden(one, hashed) for one in value]
    if isinstance(value, dict):
        return {
            name: _chosen(one, hashed)
            if name in _CHOSEN_NAMES and isinstance(one, dict)
            else _hidden(one, hashed)
            for name, one in value.items()
        }
    return value


def _chosen(values: dict[str, Any], hashed: Hash) -> dict[str, Any]:
    """Hash a mapping whose names somebody chose, names too."""
    return {hashed(name): _hidden(one, hashed) for name, one in values.items()}


def _volume(value: Any, hashed: Hash) -> Any:
    """Keep the name, by which the API server's own volumes are known, and where tokens are put."""
    if not isinstance(value, dict):
        return _hidden(value, hashed)
    kept = {"name": value.get("name"), "mountPath": _TOKEN_MOUNT}
    return {
        name: one if one is not None and kept.get(name) == one else _hidden(one, hashed)
        for name, one in value.items()
    }


def _condition(value: Any, hashed: Hash) -> Any:
    """Keep the message: a controller's, since those of pods and namespaces were hashed before."""
    result = _value("", value, hashed)
    if isinstance(value, dict) and isinstance(value.get("message"), str):
        result["message"] = value["message"]
    return result


def _labels(labels: dict[str, Any], hashed: Hash) -> dict[str, Any]:
    return {
        name if name in _MACHINE_LABELS else hashed(name): value
        if name in _MACHINE_LABELS
        else _hidden(value, hashed)
        for name, value in labels.items()
    }


def _expressions(selector: dict[str, Any], hashed: Hash) -> dict[str, Any]:
    """Hash a label selector as the labels that it selects are."""
    result = dict(selector)
    if isinstance(selector.get("matchLabels"), dict):
        result["matchLabels"] = _labels(selector["matchLabels"], hashed)
    expressions = selector.get("matchExpressions")
    if isinstance(expressions, list):
        result["matchExpressions"] = [
            _expression(one, hashed) if isinstance(one, dict) else one for one in expressions
        ]
    return result


def _expression(expression: dict[str, Any], hashed: Hash) -> dict[str, Any]:
    key = expression.get("key")
    if not isinstance(key, str) or key in _MACHINE_LABELS:
        return expression
    return {
        **expression,
        "key": hashed(key),
        "values": _hidden(expression.get("values") or [], hashed),
    }


def _as_it_is(value: dict[str, Any], hashed: Hash) -> dict[str, Any]:
    del hashed
    return value


_SPECIAL: dict[str, Callable[[dict[str, Any], Hash], dict[str, Any]]] = {
    "labels": _labels,
    "selector": _expressions,
    # Redacted before: what is left of them is the controllers'.
    "annotations": _as_it_is,
    # Rules, word for word.
    "podFailurePolicy": _as_it_is,
    "successPolicy": _as_it_is,
    "uncountedTerminatedPods": _as_it_is,
    "involvedObject": _as_it_is,
    "regarding": _as_it_is,
}
