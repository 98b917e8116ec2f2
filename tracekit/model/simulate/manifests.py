"""Manifests as a workload: the Jobs and CronJobs that a YAML or JSON file says there should be.

A manifest says nothing of what pods do, so each of them runs a second and succeeds. The run begins
a minute before the first CronJob is due and lasts until each was, within a day; what is due within
an hour more than once is so up to three times. Longer runs are mostly renewals of Leases.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import yaml
from msgspec import Struct

from tracekit.base.cron import CronSpecError, load_zone, next_activations_ns
from tracekit.base.errors import UsageError
from tracekit.base.kube.job_defaults import GENERATED_LABELS
from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339, parse_rfc3339
from tracekit.base.plain_yaml import load_all
from tracekit.model.simulate.workload import START, Object, Workload
from tracekit.versions.cron_spec import TimeZoneError, kubernetes_spec
from tracekit.versions.era import NEWEST

_BEGINS = re.compile(rb"^[\s\xef\xbb\xbf-]*[\"']?apiVersion\b|^\s*\{|^kind:", re.MULTILINE)
_GROUP = "batch/"
_MINUTE_NS = 60 * NS_PER_S
_RUNS = 3
#: How long is waited for the first time of a CronJob, and for its further ones.
_WITHIN_NS = 24 * 60 * _MINUTE_NS
_AGAIN_NS = 60 * _MINUTE_NS
_AFTER_S = 300


class Manifests(Struct, frozen=True):
    """The workload that manifests are, and what is worth knowing of it, as sentences."""

    workload: Workload
    remarks: tuple[str, ...]


def manifests_of(content: bytes, name: str) -> Manifests | None:
    """What a file of manifests describes; None if it is none.

    Raises:
        UsageError: It has neither Jobs nor CronJobs, or one whose schedule cannot be read.
    """
    if _BEGINS.search(content.replace(b"\0", b"")[: 1 << 16]) is None:
        return None
    try:
        documents = [found for found in load_all(content) if found is not None]
    except yaml.YAMLError as error:
        raise UsageError(f"{name} is not YAML: {' '.join(str(error).split())}") from error
    objects = [found for document in documents for found in _objects(document)]
    if not objects or len(objects) < len(documents):
        return None
    jobs = [_planned(obj) for obj in objects if _is(obj, "Job")]
    cron_jobs = [_planned(obj) for obj in objects if _is(obj, "CronJob")]
    if not jobs and not cron_jobs:
        kinds = ", ".join(sorted({str(obj["kind"])[:60] for obj in objects})[:5])
        raise UsageError(
            f"{name} has neither a Job nor a CronJob, but {kinds}: name a file that has, or a "
            "workload file (docs/simulate.md)"
        )
    start_ns, end_ns = _span(cron_jobs)
    lasts_s = (end_ns - start_ns) // NS_PER_S + max(map(_lasting_s, jobs), default=0) + _AFTER_S
    start = format_rfc3339(start_ns) or START
    left_out = len(objects) - len(jobs) - len(cron_jobs)
    return Manifests(
        Workload(duration=lasts_s, start=start, jobs=jobs, cron_jobs=cron_jobs),
        tuple(_remarks(name, start, lasts_s, left_out)),
    )


def _remarks(name: str, start: str, lasts_s: int, left_out: int) -> Iterator[str]:
    yield (
        f"{name} has manifests, which say nothing of pods: each runs 1 s and succeeds; {lasts_s} s "
        f"from {start} are simulated (docs/simulate.md has the files that say otherwise)"
    )
    if left_out:
        noun = "object" if left_out == 1 else "objects"
        yield f"{left_out} {noun} of other kinds left out"


def _objects(document: object) -> Iterator[dict[str, Any]]:
    """The objects in a document, those of a list one by one."""
    if isinstance(document, list):
        for item in document:
            yield from _objects(item)
        return
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        return
    items = document.get("items")
    if isinstance(items, list) and document["kind"].endswith("List"):
        kind = document["kind"].removesuffix("List")
        for item in items:
            if isinstance(item, dict):
                yield {"kind": kind, "apiVersion": document.get("apiVersion"), **item}
    elif "apiVersion" in document:
        yield document


def _is(obj: dict[str, Any], kind: str) -> bool:
    return obj["kind"] == kind and str(obj.get("apiVersion")).startswith(_GROUP)


def _planned(obj: dict[str, Any]) -> Object:
    """A manifest as an object that a user creates."""
    meta = _part(obj, "metadata")
    prefix = meta.get("generateName")
    name = meta.get("name") or (f"{prefix}00000" if prefix else "unnamed")
    spec = dict(_part(obj, "spec"))
    if obj["kind"] == "Job":
        _without_server(spec)
    return Object(
        str(name),
        spec,
        namespace=str(meta.get("namespace") or "default"),
        labels=_texts(meta, "labels"),
        annotations=_texts(meta, "annotations"),
    )


def _without_server(spec: dict[str, Any]) -> None:
    """Take out what the server has put into a Job that was read back from it."""
    if spec.get("manualSelector") is True:
        return
    spec.pop("selector", None)
    template = dict(_part(spec, "template"))
    meta = dict(_part(template, "metadata"))
    labels = {k: v for k, v in _part(meta, "labels").items() if k not in GENERATED_LABELS}
    if labels != _part(meta, "labels"):
        spec["template"] = {**template, "metadata": {**meta, "labels": labels}}


def _texts(meta: dict[str, Any], key: str) -> dict[str, str]:
    left_out = () if key == "annotations" else GENERATED_LABELS
    return {str(k): str(v) for k, v in _part(meta, key).items() if k not in left_out}


def _part(obj: dict[str, Any], key: str) -> dict[str, Any]:
    found = obj.get(key)
    return found if isinstance(found, dict) else {}


def _lasting_s(job: Object) -> int:
    """How long after it has ended, or at most while it runs, a Job has something due."""
    fields = ("activeDeadlineSeconds", "ttlSecondsAfterFinished")
    given = [value for name in fields if type(value := job.spec.get(name)) is int and value > 0]
    return min(sum(given), _WITHIN_NS // NS_PER_S)


def _span(cron_jobs: Sequence[Object]) -> tuple[int, int]:
    """When the run begins and when the last CronJob that is waited for is due, Unix ns."""
    begin_ns = parse_rfc3339(START) or 0
    due = [found for obj in cron_jobs if (found := _due(obj, begin_ns))]
    if not due:
        return begin_ns, begin_ns
    first_ns = min(found[0] for found in due)
    within = [
        at_ns
        for found in due
        for at_ns in found
        if found[0] - first_ns <= _WITHIN_NS and at_ns - found[0] <= _AGAIN_NS
    ]
    return first_ns - _MINUTE_NS, max(within)


def _due(cron_job: Object, from_ns: int) -> list[int]:
    """The first times at which a CronJob is due, Unix ns."""
    spec = cron_job.spec
    schedule, zone = str(spec.get("schedule", "")), spec.get("timeZone")
    try:
        full = kubernetes_spec(
            schedule, time_zone=None if zone is None else str(zone), version=NEWEST
        )
        return next_activations_ns(
            full.spec,
            from_ns=from_ns + _MINUTE_NS,
            count=_RUNS,
            generation=full.generation,
            zone=load_zone("UTC"),
        )
    except (CronSpecError, TimeZoneError) as error:
        raise UsageError(
            f"CronJob {cron_job.name}: Kubernetes {NEWEST} cannot read the schedule "
            f"{schedule!r}: {error}"
        ) from None
