"""Does an observed Job have the body that its CronJob's template asks for?

The API server fills in fields of its own and copies the pod template's labels onto a Job without
labels; each such addition is named here, anything else that differs is reported with its path.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from tracekit.base.kube.job_defaults import GENERATED_LABELS, default_backoff_limit
from tracekit.base.kube.views import JOB_TRACKING_ANNOTATION
from tracekit.check.compare.fields import FieldDifference
from tracekit.ports.cronjob.actions import CreateJob

_ANNOTATION_ADDITIONS: Final = frozenset({JOB_TRACKING_ANNOTATION})
#: Fields of a Job spec that the server fills in, and with what; None = with anything.
_SPEC_DEFAULTS: Final[Mapping[str, Any]] = {
    "parallelism": 1,
    "completions": 1,
    "backoffLimit": None,  # see default_backoff_limit
    "completionMode": "NonIndexed",
    "suspend": False,
    "manualSelector": False,
    "selector": None,
    "podReplacementPolicy": None,
    "maxFailedIndexes": None,
}


def job_body_differences(
    intent: CreateJob, raw: Mapping[str, Any], dropped: Collection[str] = ()
) -> list[FieldDifference]:
    """Every field of a created Job that the controller would not have posted.

    `dropped` are fields of the spec whose gate is off, as far as is known: the server stores them
    in the template of a CronJob, and not in a Job.
    """
    meta = raw.get("metadata") or {}
    spec = raw.get("spec") or {}
    pod_labels = ((intent.spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    found = list(_labels(intent, meta.get("labels") or {}, pod_labels))
    observed = {
        key: value
        for key, value in (meta.get("annotations") or {}).items()
        if key in intent.annotations or key not in _ANNOTATION_ADDITIONS
    }
    found += _maps("metadata.annotations", intent.annotations, observed)
    found += _owner(intent, meta.get("ownerReferences") or [])
    posted = {key: value for key, value in intent.spec.items() if key in spec or key not in dropped}
    found += _spec(posted, spec)
    return found


def _labels(
    intent: CreateJob, observed: Mapping[str, Any], pod_labels: Mapping[str, Any]
) -> Iterator[FieldDifference]:
    expected = intent.labels or pod_labels
    shown = {k: v for k, v in observed.items() if k in expected or k not in GENERATED_LABELS}
    yield from _maps("metadata.labels", expected, shown)


def _maps(
    path: str, expected: Mapping[str, Any], observed: Mapping[str, Any]
) -> Iterator[FieldDifference]:
    for key in sorted({*expected, *observed}):
        if expected.get(key) != observed.get(key):
            yield FieldDifference(f"{path}.{key}", expected.get(key), observed.get(key))


def _owner(intent: CreateJob, observed: list[Mapping[str, Any]]) -> Iterator[FieldDifference]:
    expected = {
        "apiVersion": intent.owner_api,
        "kind": "CronJob",
        "name": intent.owner_name,
        "uid": intent.owner_uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    if len(observed) != 1:
        yield FieldDifference("metadata.ownerReferences", [expected], observed)
        return
    yield from _maps("metadata.ownerReferences[0]", expected, observed[0])


def _spec(expected: Mapping[str, Any], observed: Mapping[str, Any]) -> Iterator[FieldDifference]:
    for key in sorted({*expected, *observed}):
        path = f"spec.{key}"
        if key not in expected:
            default = _SPEC_DEFAULTS.get(key)
            if key == "backoffLimit":
                per_index = expected.get("backoffLimitPerIndex") is not None
                default = default_backoff_limit(per_index=per_index)
            if key not in _SPEC_DEFAULTS or (default is not None and observed[key] != default):
                yield FieldDifference(path, None, observed[key])
        elif key == "template":
            yield from _within(path, expected[key], observed.get(key))
        elif expected[key] != observed.get(key):
            yield FieldDifference(path, expected[key], observed.get(key))


def _within(path: str, expected: Any, observed: Any) -> Iterator[FieldDifference]:
    """What a stored template has, the Job's template must have; the server may have added more."""
    if isinstance(expected, dict) and isinstance(observed, dict):
        for key, value in expected.items():
            if key == "creationTimestamp" and value is None:
                continue
            yield from _within(f"{path}.{key}", value, observed.get(key))
        if path.endswith(".labels"):
            for key in sorted(set(observed) - set(expected) - GENERATED_LABELS):
                yield FieldDifference(f"{path}.{key}", None, observed[key])
    elif isinstance(expected, list) and isinstance(observed, list):
        if len(expected) != len(observed):
            yield FieldDifference(path, expected, observed)
            return
        for index, (left, right) in enumerate(zip(expected, observed, strict=True)):
            yield from _within(f"{path}[{index}]", left, right)
    elif expected != observed and not (expected in ({}, [], None) and observed is None):
        yield FieldDifference(path, expected, observed)
