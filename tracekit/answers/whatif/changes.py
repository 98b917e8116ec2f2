"""What a what-if changes in a Job: fields of its spec that are set, what admission makes of it.

The API server of another version writes other things into a new Job. Of those only what the
controllers ask for is changed here: the annotation by which tracked Jobs were known up to 1.26. The
labels of a template and its defaults stay as recorded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.errors import UsageError
from tracekit.base.kube.job_defaults import default_backoff_limit
from tracekit.base.kube.views import JOB_TRACKING_ANNOTATION, JobView, job_spec_from_raw
from tracekit.base.suggest import hint
from tracekit.versions.job import JobRules

#: The fields of a Job's spec that controllers read.
JOB_FIELDS: Final = (
    "activeDeadlineSeconds", "backoffLimit", "backoffLimitPerIndex", "completionMode",
    "completions", "managedBy", "maxFailedIndexes", "parallelism", "podFailurePolicy",
    "podReplacementPolicy", "successPolicy", "suspend", "template.spec.restartPolicy",
    "template.spec.terminationGracePeriodSeconds", "ttlSecondsAfterFinished",
)  # fmt: skip
_WHOLE_NUMBERS: Final = frozenset(
    {
        "activeDeadlineSeconds", "backoffLimit", "backoffLimitPerIndex", "completions",
        "maxFailedIndexes", "parallelism", "ttlSecondsAfterFinished",
        "template.spec.terminationGracePeriodSeconds",
    }
)  # fmt: skip
_CHOICES: Final = {
    "completionMode": ("Indexed", "NonIndexed"),
    "podReplacementPolicy": ("Failed", "TerminatingOrFailed"),
    "template.spec.restartPolicy": ("Never", "OnFailure"),
}

Change = Callable[[JobView], JobView]


class Setting(Struct, frozen=True):
    """One `--set`: a path below spec, and its value; None takes the field away."""

    path: str
    value: Any

    @property
    def name(self) -> str:
        """As it is told: `spec.backoffLimit=3`."""
        value = "null" if self.value is None else self.value
        return f"spec.{self.path}={json.dumps(value) if isinstance(value, bool) else value}"


def parse_settings(texts: Iterable[str]) -> tuple[Setting, ...]:
    """What `--set` names: `spec.backoffLimit=3` and its like.

    Raises:
        UsageError: It is no setting, or the field is none that the controllers read.
    """
    return tuple(_setting(text) for text in texts)


def _setting(text: str) -> Setting:
    path, sign, said = text.partition("=")
    name = path.strip().removeprefix("spec.")
    if not sign:
        raise UsageError(f"--set {text!r} sets nothing: write it like spec.{JOB_FIELDS[0]}=…")
    if name not in JOB_FIELDS:
        raise UsageError(
            f"--set {text!r}: the controllers read no field spec.{name}"
            + hint(name, JOB_FIELDS, f"they read {', '.join(JOB_FIELDS)}")
        )
    try:
        value = json.loads(said)
    except json.JSONDecodeError:
        value = said.strip()
    _check(name, value, text)
    return Setting(name, value)


def _check(name: str, value: Any, text: str) -> None:
    if value is None:
        return
    if name in _WHOLE_NUMBERS and (
        not isinstance(value, int) or isinstance(value, bool) or value < 0
    ):
        raise UsageError(f"--set {text!r}: spec.{name} takes a whole number, not below 0")
    if name == "suspend" and not isinstance(value, bool):
        raise UsageError(f"--set {text!r}: spec.suspend takes true or false")
    if name in _CHOICES and value not in _CHOICES[name]:
        raise UsageError(f"--set {text!r}: spec.{name} is one of {', '.join(_CHOICES[name])}")
    if name in ("podFailurePolicy", "successPolicy") and not isinstance(value, dict):
        raise UsageError(f"--set {text!r}: spec.{name} takes an object, as JSON")


def with_settings(raw: Mapping[str, Any], settings: Iterable[Setting]) -> dict[str, Any]:
    """A spec with the settings applied; the given one stays as it is."""
    spec = dict(raw)
    for setting in settings:
        *parents, last = setting.path.split(".")
        inner = spec
        for parent in parents:
            inner[parent] = dict(inner.get(parent) or {})
            inner = inner[parent]
        if setting.value is None:
            inner.pop(last, None)
        else:
            inner[last] = setting.value
    return spec


def job_change(rules: JobRules, settings: tuple[Setting, ...] = ()) -> Change:
    """What becomes of a recorded Job under other rules and settings."""
    by_annotation = rules.tracking_by_annotation and not rules.tracking_always

    def change(job: JobView) -> JobView:
        tracked = JOB_TRACKING_ANNOTATION in job.annotations
        spec = job.spec
        if settings:
            spec = job_spec_from_raw(with_settings(spec.raw, settings))
        if (
            not rules.backoff_limit_per_index
            and spec.backoff_limit_per_index is not None
            and spec.backoff_limit == default_backoff_limit(per_index=True)
        ):
            spec = replace(spec, backoff_limit=default_backoff_limit(per_index=False))
        if tracked == by_annotation and spec is job.spec:
            return job
        annotations = {k: v for k, v in job.annotations.items() if k != JOB_TRACKING_ANNOTATION}
        if by_annotation:
            annotations[JOB_TRACKING_ANNOTATION] = ""
        return replace(job, spec=spec, annotations=annotations)

    return change
