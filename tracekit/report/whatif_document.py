"""What other rules would have done, as data: causes in groups, and the JSON document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct

from tracekit.answers.whatif.answers import Answers, Cause, Drawn, JobAnswer
from tracekit.answers.whatif.course import JobCourse
from tracekit.answers.whatif.cron_answers import CronAnswer
from tracekit.answers.whatif.cron_course import Start
from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.versions.era import Era
from tracekit.versions.gates import GATES, Gate
from tracekit.versions.rows import Row, RowText, describe_row
from tracekit.versions.table import KINDS

SCHEMA_VERSION: Final = 1
#: Worst first, and what is not decided last.
ORDER: Final = ("outcome", "pods", "timing", "fields", "uncalibrated", "unknowable", "same")
#: Of the starts of one side alone so many are listed; the counts tell of all.
_STARTS_SHOWN: Final = 100


class CauseGroup(Struct, frozen=True):
    """Jobs and CronJobs of one class that one row of the table makes."""

    cause: Cause
    verdict: str
    jobs: int
    example: str
    cron_jobs: int = 0
    #: Of the least and the most certain of them; None where all are proved.
    drawn: tuple[Drawn, Drawn] | None = None


def cause_groups(answers: Answers) -> list[CauseGroup]:
    """By cause and class: the worst class first, then the most Jobs."""
    found: dict[tuple[str, Cause], list[JobAnswer | CronAnswer]] = {}
    every: list[JobAnswer | CronAnswer] = [*answers.cron_jobs, *answers.jobs]
    for answer in every:
        for cause in answer.because:
            found.setdefault((answer.verdict, cause), []).append(answer)
    groups = []
    for (verdict, cause), answers_of in found.items():
        cron_jobs = sum(isinstance(answer, CronAnswer) for answer in answers_of)
        jobs = len(answers_of) - cron_jobs
        drawn = span_of(answer.drawn for answer in answers_of)
        groups.append(CauseGroup(cause, verdict, jobs, answers_of[0].key, cron_jobs, drawn))
    groups.sort(key=lambda g: (ORDER.index(g.verdict), -g.cron_jobs, -g.jobs, g.cause))
    return groups


def span_of(drawn: Iterable[Drawn | None]) -> tuple[Drawn, Drawn] | None:
    """The least and the most certain of some answers; None where no run was asked."""
    known = [one for one in drawn if one is not None]
    if not known:
        return None
    return (
        min(known, key=lambda one: one.agree / one.of),
        max(known, key=lambda one: one.agree / one.of),
    )


def row_text(cause: Cause, answers: Answers) -> RowText | None:
    """What the table says of a cause; None for what the user set."""
    if cause.kind in KINDS:
        return describe_row(Row(*cause), answers.recorded, answers.target)
    return None


def document(answers: Sequence[Answers]) -> dict[str, Any]:
    """The JSON document; several targets stand in `matrix`, each as its own document."""
    if len(answers) == 1:
        return _document(answers[0])
    return {"schema_version": SCHEMA_VERSION, "matrix": [_document(one) for one in answers]}


def _document(answers: Answers) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "from": _era(answers.recorded),
        "to": _era(answers.target),
        "settings": [
            *(setting.name for setting in answers.settings),
            *(setting.name for setting in answers.cron_settings),
        ],
        "draws": answers.draws,
        "calibrated": answers.calibrated,
        "counts": answers.counts(),
        "jobs": [_job(answer) for answer in answers.jobs],
        "cronjob_counts": answers.cron_counts(),
        "cronjobs": [cron_job_document(answer) for answer in answers.cron_jobs],
        "causes": [
            {
                "kind": group.cause.kind,
                "name": group.cause.name,
                "verdict": group.verdict,
                "jobs": group.jobs,
                "cronjobs": group.cron_jobs,
                "example": group.example,
                **_texts(row_text(group.cause, answers)),
            }
            for group in cause_groups(answers)
        ],
    }


def _texts(text: RowText | None) -> dict[str, str]:
    if text is None:
        return {}
    return {
        "about": text.about,
        "upstream": text.upstream,
        "reference": text.reference,
        "keeps_old": text.keeps_old,
    }


def _era(era: Era) -> dict[str, Any]:
    """The version, and the gates that are not as the version has them by default."""
    gates = {
        gate.value: era.enabled(gate)
        for gate in Gate
        if era.enabled(gate) is not GATES[gate].default_at(era.basis)
    }
    return {"kubernetes_version": str(era.version), "feature_gates": gates}


def _job(answer: JobAnswer) -> dict[str, Any]:
    found: dict[str, Any] = {
        "namespace": answer.job.namespace,
        "name": answer.job.name,
        "uid": answer.job.uid,
        "verdict": answer.verdict,
        "proved": answer.proved,
        "extrapolated": answer.extrapolated,
        "recorded": _course(answer.recorded),
    }
    if answer.baseline is not None:
        found["baseline"] = _course(answer.baseline)
    if answer.target is not None:
        found["target"] = _course(answer.target)
    if answer.courses:
        found["courses"] = [{**_course(way.course), "draws": way.times} for way in answer.courses]
    return {**found, **document_of(answer)}


def cron_job_document(answer: CronAnswer) -> dict[str, Any]:
    """One CronJob of the document."""
    found: dict[str, Any] = {
        "namespace": answer.cron_job.namespace,
        "name": answer.cron_job.name,
        "uid": answer.uid,
        "verdict": answer.verdict,
        "proved": answer.proved,
        "extrapolated": answer.extrapolated,
        "recorded": answer.recorded.counts,
    }
    if answer.baseline is not None:
        found["baseline"] = answer.baseline.counts
    if answer.target is not None:
        found["target"] = answer.target.counts
        names = ("only_baseline", "only_target")
        found |= {name: _starts(side) for name, side in zip(names, answer.only, strict=True)}
    return {**found, **document_of(answer)}


def _starts(starts: Sequence[Start]) -> list[dict[str, Any]]:
    return [
        {
            "due": format_rfc3339(start.due_ns),
            "started": format_rfc3339(start.started_ns),
            "job": start.job,
        }
        for start in starts[:_STARTS_SHOWN]
    ]


def document_of(answer: JobAnswer | CronAnswer) -> dict[str, Any]:
    """What documents tell of a Job and of a CronJob alike: why, and how sure it is."""
    found: dict[str, Any] = {}
    found["because"] = [{"kind": c.kind, "name": c.name} for c in answer.because]
    if answer.drawn is not None:
        found["certain"] = answer.drawn.agree == answer.drawn.of
        found["draws"] = {"agree": answer.drawn.agree, "of": answer.drawn.of}
    elif answer.target is not None:
        found["certain"] = True
    if answer.why:
        found["reason"] = answer.reason
        found["why"] = answer.why
    fork = answer.fork
    if fork is not None:
        found["fork"] = {
            "kind": fork.kind,
            "time": format_rfc3339(fork.at_ns),
            "resource_version": fork.resource_version,
            "text": fork.text,
        }
    return found


def _course(course: JobCourse) -> dict[str, Any]:
    return {
        "ended": course.ended,
        "reason": course.reason,
        "pods": course.pods,
        "succeeded": course.succeeded,
        "failed": course.failed,
        "finished_after_s": course.finished_after_s,
    }
