"""TK317: a CronJob whose Jobs the API server refuses each time: what it said, or must say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tracekit.answers.evidence import Evidence
from tracekit.answers.model import Case, Rule, Severity, Target
from tracekit.answers.refusals import Refusal, objection, refusal_advice, refusal_of
from tracekit.answers.trace_model import CronJob, Facts, Job
from tracekit.answers.words import clock, shortened
from tracekit.base.kube.stored import as_mapping

#: Upstream: apimachinery's util/validation, IsDNS1123Label, IsValidLabelValue, IsQualifiedName.
LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LABEL_MAX: Final = 63
_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_NAME: Final = re.compile(r"(?:[a-z0-9.-]{1,253}/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
#: Upstream: staging/src/k8s.io/apimachinery/pkg/api/validation, TotalAnnotationSizeLimitB.
_ANNOTATIONS_MAX: Final = 256 << 10
#: Minutes since 1970 as a Job's name ends with, `-29921866`: eight digits until the year 2160.
_SLOT: Final = "-00000000"
#: Labels that a Job's pods carry of their own Job: another value is refused.
#: Upstream: pkg/apis/batch/validation/validation.go, validateGeneratedSelector.
_OF_ITS_JOB: Final = ("controller-uid", "job-name")
_PREFIX: Final = "batch.kubernetes.io/"

REFUSED_JOBS = Rule(
    "TK317", "Jobs that the API server must refuse", Severity.ERROR,
    "A Job of the CronJob was answered 422 (audit log, Event FailedCreate) and none came since; or "
    "an Event of type Warning of another owner (a JobSet) says that a Job was refused; or "
    "its jobTemplate breaks a rule of upstream's validation of a Job that the CronJob's own does "
    "not ask: labels of another Job on the pod template (controller-uid, job-name, with and "
    "without batch.kubernetes.io/), labels or annotations of jobTemplate.metadata that are not "
    "valid, or, of an Indexed one, a host name NAME-MINUTES-INDEX that is no DNS label (63 "
    "characters, no dot). The field and the message are named.",
    "Of host names: a release without that check takes the Job and refuses its last pods; not told "
    "where a Job of the CronJob was seen.",
    "Correct the field in the CronJob: kubectl edit cronjob NAME.", rank=5,
)  # fmt: skip
RULES = (REFUSED_JOBS,)
_SHORTER: Final = "Create the CronJob under a shorter name without dots, and delete this one."


def refused_jobs(facts: Facts, cron: CronJob, jobs: Sequence[Job]) -> Case | None:
    """The CronJob's case, where each of its Jobs is refused, or must be."""
    if cron.last.gone:
        return None
    return _answered(facts, cron, jobs) or _by_rules(facts, cron, jobs)


def of_parents(facts: Facts) -> Iterator[Case]:
    """Whoever else makes Jobs and has an Event that one was refused: a JobSet, an operator's kind.

    Their objects are not in a record: their Events are all that is known.
    """
    for (kind, namespace, name, uid), events in facts.refused_parents.items():
        last = max(events, key=lambda event: event.last_ns)
        message = str(last.row["message"] or "")
        refusal = refusal_of(message)
        what = objection(message) if refusal is Refusal.INVALID else refusal.value
        first_ns = min(event.first_ns for event in events)
        yield Case(
            REFUSED_JOBS, Target(kind, namespace, name, uid),
            f"its Jobs are refused: {what}",
            first_ns, last.last_ns,
            f"Event {last.row['reason']}, from {clock(first_ns)} on: {shortened(message)}",
            evidence={"message": message, "from": Evidence.EVENT.value},
            todo=f"Correct it in the {kind}." if refusal is Refusal.INVALID
            else refusal_advice(message),
        )  # fmt: skip


def _answered(facts: Facts, cron: CronJob, jobs: Sequence[Job]) -> Case | None:
    """What the API server said of the Jobs, where none came since."""
    answers = [
        (int(call["recv_ns"]), str(call["message"] or ""), Evidence.AUDIT)
        for call in facts.refused_creations.get(("jobs", cron.namespace, cron.name), ())
    ] or [
        (e.last_ns, str(e.row["message"] or ""), Evidence.EVENT)
        for e in facts.cron_warnings.get(cron.uid, ())
        if e.row["reason"] == "FailedCreate"
    ]
    came_ns = max((job.created_ns for job in jobs), default=0)
    found = [answer for answer in answers if answer[0] > came_ns]
    if not found or refusal_of(max(found)[1]) not in (Refusal.INVALID, Refusal.NAME_TOO_LONG):
        return None
    last_ns, message, evidence = max(found)
    return Case(
        REFUSED_JOBS, cron.target,
        f"starts nothing: its Jobs are refused (422): {objection(message)}",
        min(found)[0], last_ns,
        f"{evidence.value}, {clock(last_ns)}: {shortened(message)}",
        evidence={"message": message, "from": evidence.value},
        todo=_SHORTER
        if refusal_of(message) is Refusal.NAME_TOO_LONG
        else _TODO.get(objection(message).partition("[")[0]),
    )  # fmt: skip


def _by_rules(facts: Facts, cron: CronJob, jobs: Sequence[Job]) -> Case | None:
    template = as_mapping(cron.last.spec.get("jobTemplate"))
    as_of = f"as of {clock(facts.as_of(cron.namespace, 'cronjobs'))}"
    found = list(_objections(template, prefixed=facts.release.prefixed_labels))
    if found:
        field, message = found[0]
        more = f"; {len(found) - 1} more" if len(found) > 1 else ""
        return Case(
            REFUSED_JOBS, cron.target,
            f"starts nothing: each of its Jobs must be refused (422): {field}: {message}",
            cron.first.at_ns, cron.last.at_ns,
            f"upstream's validation of a Job, which the CronJob's own leaves out{more}; {as_of}",
            evidence={"field": field, "message": message, "from": Evidence.RULES.value},
            todo=_TODO.get(field.partition("[")[0]),
        )  # fmt: skip
    host = None if jobs else _host_name(cron, as_mapping(template.get("spec")))
    if host is None:
        return None
    index = host.rpartition("-")[2]
    why = f"has {len(host)} characters" if len(host) > LABEL_MAX else "has a dot"
    return Case(
        REFUSED_JOBS, cron.target,
        f"starts nothing: its Jobs' names are not valid ({cron.name}-MINUTES-{index} {why})",
        cron.first.at_ns, cron.last.at_ns,
        f"host names of an Indexed Job's pods are DNS labels, 63 characters at most; {as_of}",
        evidence={"host": host, "characters": len(host)}, todo=_SHORTER,
    )  # fmt: skip


def _host_name(cron: CronJob, spec: Mapping[str, Any]) -> str | None:
    """The host name of the last pod of one of its Jobs, where no pod may have it."""
    completions = spec.get("completions")
    if spec.get("completionMode") != "Indexed" or not isinstance(completions, int):
        return None
    host = f"{cron.name}{_SLOT}-{completions - 1}"
    if completions < 1 or (len(host) <= LABEL_MAX and LABEL.fullmatch(host)):
        return None
    return host


_POD_LABELS: Final = "spec.template.metadata.labels"
_TODO: Final = {
    _POD_LABELS: "Take the label out of jobTemplate.spec.template.metadata.labels (it comes with a "
    "Job that was exported): kubectl edit cronjob NAME. The API server sets it itself.",
}


def _objections(template: Mapping[str, Any], *, prefixed: bool) -> Iterator[tuple[str, str]]:
    """Field of a Job and message, for what validation refuses of each Job of a jobTemplate."""
    pod_template = as_mapping(as_mapping(template.get("spec")).get("template"))
    labels = as_mapping(as_mapping(pod_template.get("metadata")).get("labels"))
    own = (*_OF_ITS_JOB, *(_PREFIX + name for name in _OF_ITS_JOB if prefixed))
    for key in own:
        if key in labels:
            what = "name" if key.endswith("job-name") else "uid"
            yield f"{_POD_LABELS}[{key}]", f"{labels[key]!r} is not the {what} of the new Job"
    meta = as_mapping(template.get("metadata"))
    for key, value in as_mapping(meta.get("labels")).items():
        if not _NAME.fullmatch(str(key)):
            yield f"metadata.labels[{key}]", "is no valid label key"
        elif len(str(value)) > LABEL_MAX or not _VALUE.fullmatch(str(value)):
            yield f"metadata.labels[{key}]", f"{str(value)[:80]!r} is no valid label value"
    annotations = as_mapping(meta.get("annotations"))
    size = sum(len(f"{key}{text}".encode()) for key, text in annotations.items())
    for key in annotations:
        if not _NAME.fullmatch(str(key).lower()):
            yield f"metadata.annotations[{key}]", "is no valid annotation key"
    if size > _ANNOTATIONS_MAX:
        yield "metadata.annotations", f"Too long: {size:,} bytes, {_ANNOTATIONS_MAX:,} at most"
