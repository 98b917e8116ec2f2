"""What other rules would have done, told: a screen by cause, a table of Jobs, JSON, Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TextIO

from tracekit.eras.era import Era
from tracekit.eras.gates import GATES, Gate
from tracekit.eras.rows import Row, RowText, describe_row
from tracekit.eras.table import KINDS
from tracekit.foreign import for_terminal
from tracekit.kube.timestamps import format_rfc3339
from tracekit.report.documents import write_document
from tracekit.report.table import counted, write_table
from tracekit.whatif.answers import Answers, Cause, JobAnswer, severity_of
from tracekit.whatif.course import JobCourse

SCHEMA_VERSION: Final = 1
#: Worst first, and what is not decided last.
_ORDER: Final = ("outcome", "pods", "timing", "fields", "uncalibrated", "unknowable", "same")
_MEANING: Final = {
    "outcome": "end otherwise",
    "pods": "make other pods",
    "timing": "run or end at other times",
    "fields": "differ only in what API clients see",
    "uncalibrated": "do another step, and how they end could not be derived",
    "unknowable": "cannot be told from this record",
    "same": "are the same",
}


@dataclass(frozen=True, slots=True)
class CauseGroup:
    """Jobs of one class that one row of the table makes."""

    cause: Cause
    verdict: str
    jobs: int
    example: str


def cause_groups(answers: Answers) -> list[CauseGroup]:
    """By cause and class: the worst class first, then the most Jobs."""
    found: dict[tuple[str, Cause], list[str]] = {}
    for answer in answers.jobs:
        for cause in answer.because:
            found.setdefault((answer.verdict, cause), []).append(answer.key)
    groups = [CauseGroup(c, verdict, len(keys), keys[0]) for (verdict, c), keys in found.items()]
    groups.sort(key=lambda g: (_ORDER.index(g.verdict), -g.jobs, g.cause))
    return groups


def row_text(cause: Cause, answers: Answers) -> RowText | None:
    """What the table says of a cause; None for what the user set."""
    if cause.kind in KINDS:
        return describe_row(Row(*cause), answers.recorded, answers.target)
    return None


# JSON.


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
        "settings": [setting.name for setting in answers.settings],
        "draws": answers.draws,
        "calibrated": answers.calibrated,
        "counts": answers.counts(),
        "jobs": [_job(answer) for answer in answers.jobs],
        "cronjobs": [],
        "causes": [
            {
                "kind": group.cause.kind,
                "name": group.cause.name,
                "verdict": group.verdict,
                "jobs": group.jobs,
                "example": group.example,
                **_told(row_text(group.cause, answers)),
            }
            for group in cause_groups(answers)
        ],
    }


def _told(text: RowText | None) -> dict[str, str]:
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
    found["because"] = [{"kind": c.kind, "name": c.name} for c in answer.because]
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


# Text.


def render(answers: Sequence[Answers], output: str, out: TextIO) -> None:
    """Write the answers as `output` asks."""
    if output == "json":
        write_document(document(answers), out)
        return
    if len(answers) > 1:
        _matrix(answers, out)
    for one in answers:
        if output == "markdown":
            _markdown(one, out)
        else:
            _summary(one, out)
            if output == "wide":
                _jobs(one.jobs, out)


def headline(answers: Answers) -> list[str]:
    """The first lines: from what to what, how many Jobs of each class, how far it could be told."""
    what = str(answers.target.version)
    for setting in answers.settings:
        what += f", {setting.name}"
    counts = answers.counts()
    proved = sum(answer.proved for answer in answers.jobs)
    jobs = counted(len(answers.jobs), "Job")
    lines = [
        f"{answers.recorded.version} → {what}: {jobs}, {proved:,} decided step by step (proved)"
    ]
    forking = answers.forking
    if forking:
        told = sum(1 for answer in forking if answer.verdict != "uncalibrated")
        lines.append(
            f"{counted(len(forking), 'Job')} would take another step that moves pods or times; "
            f"the model tells how {told:,} of them go on ({told / len(forking):.0%} calibrated)"
        )
    lines += [
        f"  {counts[verdict]:>7,}  {_MEANING[verdict]}" for verdict in _ORDER if counts[verdict]
    ]
    return lines


def _matrix(answers: Sequence[Answers], out: TextIO) -> None:
    counts = [one.counts() for one in answers]
    shown = [verdict for verdict in _ORDER if any(c[verdict] for c in counts)]
    rows = [
        [str(one.target.version), *(f"{c[verdict]:,}" for verdict in shown)]
        for one, c in zip(answers, counts, strict=True)
    ]
    headings = ["VERSION", *(verdict.upper() for verdict in shown)]
    write_table(headings, rows, out, right=range(1, len(headings)))
    out.write("\n")


def _summary(answers: Answers, out: TextIO) -> None:
    out.writelines(for_terminal(line) + "\n" for line in headline(answers))
    groups = cause_groups(answers)
    if groups:
        out.write("\n")
        rows = [
            [
                group.verdict,
                f"{group.jobs:,}",
                f"{group.cause.kind} {group.cause.name}",
                group.example,
            ]
            for group in groups
        ]
        write_table(["CLASS", "JOBS", "BECAUSE OF", "EXAMPLE"], rows, out, right=(1,))
        out.write("\n")
        out.writelines(for_terminal(line) + "\n" for line in _explained(groups, answers))


def _explained(groups: Iterable[CauseGroup], answers: Answers) -> Iterator[str]:
    """Each cause once: what the row says, where it was discussed, what keeps the old behaviour."""
    for cause in dict.fromkeys(group.cause for group in groups):
        text = row_text(cause, answers)
        if text is None:
            continue
        yield f"{cause.name}: {text.about} ({text.left} → {text.right})"
        where = text.reference or text.upstream
        if where:
            yield f"    {where}"
        if text.keeps_old:
            yield f"    as before with {text.keeps_old}"


def _jobs(jobs: Iterable[JobAnswer], out: TextIO) -> None:
    out.write("\n")
    rows = [
        [
            answer.key,
            answer.verdict,
            "proved" if answer.proved else "extrapolated" if answer.extrapolated else "",
            _brief(answer.recorded),
            _brief(answer.target),
            ", ".join(cause.name for cause in answer.because) or answer.why,
        ]
        for answer in sorted(jobs, key=lambda a: (_ORDER.index(a.verdict), a.key))
        if answer.verdict != "same"
    ]
    if rows:
        write_table(["JOB", "CLASS", "HOW", "RECORDED", "TARGET", "BECAUSE OF"], rows, out)


def _brief(course: JobCourse | None) -> str:
    if course is None:
        return ""
    ended = course.ended or "not finished"
    if course.ended == "Failed" and course.reason:
        ended += f" {course.reason}"
    after = "" if course.finished_after_s is None else f" after {course.finished_after_s:.0f} s"
    return f"{ended}{after}, {counted(course.pods, 'pod')}"


def _markdown(answers: Answers, out: TextIO) -> None:
    lines = headline(answers)
    out.write(f"## {lines[0]}\n\n")
    out.writelines(f"{line.strip()}\n" for line in lines[1:] if not line.startswith("  "))
    out.write("\n| class | Jobs | |\n|---|--:|---|\n")
    counts = answers.counts()
    for verdict in _ORDER:
        if counts[verdict]:
            out.write(f"| {verdict} | {counts[verdict]:,} | {_MEANING[verdict]} |\n")
    groups = cause_groups(answers)
    if groups:
        out.write(
            "\n| class | Jobs | because of | what changed | example |\n|---|--:|---|---|---|\n"
        )
        for group in groups:
            text = row_text(group.cause, answers)
            about = text.about if text is not None else ""
            link = f" ([upstream]({text.reference}))" if text is not None and text.reference else ""
            cells = [
                group.verdict,
                f"{group.jobs:,}",
                f"{group.cause.kind} `{group.cause.name}`",
                about + link,
                f"`{group.example}`",
            ]
            out.write("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
    out.write("\n")


def render_why(answer: JobAnswer, answers: Answers, out: TextIO) -> None:
    """One Job's two courses, and where and why they part."""
    lines = [f"Job {answer.key} ({answer.job.uid})"]
    for era, course in ((answers.recorded, answer.recorded), (answers.target, answer.target)):
        if course is not None:
            counts = f"{course.succeeded} succeeded, {course.failed} failed"
            lines.append(f"  {era.version}: {_brief(course)}, {counts}")
    how = " (proved)" if answer.proved else ""
    lines.append(f"  {answer.verdict}{how}{f': {answer.why}' if answer.why else ''}")
    if answer.differences:
        lines.append("")
    for difference in answer.differences:
        at = format_rfc3339(difference.at_ns) or ""
        mark = "fork" if difference.fork else difference.severity.name.lower()
        lines.append(f"  {at}  {mark:<8}{difference.text}")
    if answer.because:
        lines += ["", "Because of"]
        groups = [CauseGroup(cause, answer.verdict, 1, answer.key) for cause in answer.because]
        lines += [f"  {line}" for line in _explained(groups, answers)]
    out.writelines(for_terminal(line) + "\n" for line in lines)


def fails(answers: Iterable[Answers], fail_on: str) -> bool:
    """Whether a Job differs as badly as that, or worse."""
    limit = severity_of(fail_on)
    return any(one.worst() >= limit for one in answers)
