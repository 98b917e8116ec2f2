"""What an API server makes of a body first: a null is no field, a field of a wrong type is refused.

As far as the model goes into objects; a number or a choice of another type counts as absent there.
"""

from __future__ import annotations

from typing import Any

from tracekit.model.cluster.store import Raw

_META: Raw = {"labels": {}, "annotations": {}}
_TEMPLATE: Raw = {"metadata": _META, "spec": {"containers": [{}], "initContainers": [{}]}}
_JOB_SPEC: Raw = {
    "template": _TEMPLATE,
    "selector": {},
    "podFailurePolicy": {"rules": [{}]},
    "successPolicy": {"rules": [{}]},
}
_JOB: Raw = {"metadata": _META, "spec": _JOB_SPEC}
#: By resource: a value of the type of each field, of a list one of its elements.
_SHAPES = {
    "jobs": _JOB,
    "cronjobs": {"metadata": _META, "spec": {"schedule": "", "jobTemplate": _JOB}},
}
_TYPES: dict[type, str] = {dict: "an object", list: "a list", str: "a text"}


def without_nulls(value: Any) -> Any:
    """A copy without the fields that are null."""
    if type(value) is dict:
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if type(value) is list else value


def misshapen(kind: str, obj: Raw) -> str:
    """Why an object cannot be one of the API; empty if it can, or the model does not go into it."""
    shape = _SHAPES.get(kind)
    if shape is None:
        return ""
    absent = [name for name in shape if obj.get(name) is None]
    if absent:
        return f"{absent[0]}: Required value"
    odd = _odd(obj, shape, "")
    if not odd and kind == "cronjobs" and not obj["spec"].get("schedule"):
        return "spec.schedule: Required value"
    return odd


def _odd(value: Any, shape: Any, path: str) -> str:
    """The first field of another type than the API's."""
    if type(value) is not type(shape):
        return f"{path}: Invalid value: {_TYPES[type(shape)]} is wanted"
    if type(shape) is dict:
        inner = ((name, value.get(name), of) for name, of in shape.items())
        odd = (_odd(v, of, f"{path}.{name}".lstrip(".")) for name, v, of in inner if v is not None)
        return next(filter(None, odd), "")
    if type(shape) is list:
        odd = (_odd(one, shape[0], f"{path}[{at}]") for at, one in enumerate(value))
        return next(filter(None, odd), "")
    return ""
