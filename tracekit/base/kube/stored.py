"""Parts of objects as the columns of a trace hold them: JSON, and what of it has its type.

Whoever asks a spec for a field gets a value of the field's type, or none (see `api_types`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from tracekit.base.kube.api_types import as_type

_SPECS: Final = {
    "jobs": "batch.JobSpec",
    "cronjobs": "batch.CronJobSpec",
    "pods": "core.PodSpec",
}


@lru_cache(maxsize=4096)
def spec_of(stream: str, text: str | None) -> Mapping[str, Any]:
    """The `.spec` of an object in that stream."""
    found = object_of(text)
    kind = _SPECS.get(stream)
    return as_type(kind, found) if kind else found


@lru_cache(maxsize=4096)
def texts_of(text: str | None) -> Mapping[str, str]:
    """Labels or annotations."""
    return {key: value for key, value in object_of(text).items() if isinstance(value, str)}


def object_of(text: str | None) -> dict[str, Any]:
    """What a column has as JSON; empty where it is no object."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return as_mapping(found)


def as_mapping(value: object) -> dict[str, Any]:
    """A field that has fields of its own; empty where it is anything else."""
    return value if isinstance(value, dict) else {}
