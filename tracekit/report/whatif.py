"""What other rules would have done, told: a screen by cause, tables of Jobs, Markdown, one Job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TextIO

from tracekit.answers.whatif.answers import Answers, Drawn, JobAnswer, severity_of
from tracekit.answers.whatif.course import JobCourse
from tracekit.answers.whatif.cron_answers import CronAnswer
from tracekit.answers.whatif.cron_course import CronCourse, Start
from tracekit.base.escaping import for_terminal
from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.report.documents import write_document
from tracekit.report.table import counted, write_table
from tracekit.report.whatif_document import (
    ORDER,
    CauseGroup,
    cause_groups,
    document,
    row_text,
)

_MEANING: Final = {
    "outcome": "end otherwise",
    "pods": "make other pods",
    "timing": "run or end at other times",
    "fields": "differ only in what API clients see",
    "uncalibrated": "do another step, and how they end could not be derived",
    "unknowable": "cannot be told from this record",
    "same": "are the same",
}
_CRON_MEANING: Final = {
    **_MEANING,
    "outcome": "start or miss other times of their schedules",
    "pods": "delete other Jobs",
    "timing": "start their Jobs at other times",
}


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
                _cron_jobs(one.cron_jobs, out)
                _jobs(one.jobs, out)


def headline(answers: Answers) -> list[str]:
    """The first lines: from what to what, how many Jobs of each class, how far it could be told."""
    what = str(answers.target.version)
    for name in setting_names(answers):
        what += f", {name}"
    counts = answers.counts()
    proved = sum(answer.proved for answer in answers.jobs)
    jobs = counted(len(answers.jobs), "Job")
    lines = [
        f"{answers.recorded.version} → {what}: {jobs}, {proved:,} decided step by step (proved)"
    ]
    forking = answers.forking
    if forking:
        known = sum(1 for answer in forking if answer.verdict != "uncalibrated")
        lines.append(
            f"{counted(len(forking), 'Job')} would take another step that moves pods or times; "
            f"the model tells how {known:,} of them go on ({known / len(forking):.0%} calibrated)"
        )
    lines += _class_lines(counts, [(a.verdict, a.drawn) for a in answers.jobs])
    if answers.cron_jobs:
        proved = sum(answer.proved for answer in answers.cron_jobs)
        lines.append(f"{counted(len(answers.cron_jobs), 'CronJob')}, {proved:,} proved")
        drawn = [(a.verdict, a.drawn) for a in answers.cron_jobs]
        lines += _class_lines(answers.cron_counts(), drawn, _CRON_MEANING)
    return lines


def setting_names(answers: Answers) -> list[str]:
    """What the user set, as it is told."""
    names = [setting.name for setting in answers.settings]
    return names + [setting.name for setting in answers.cron_settings]


def _class_lines(
    counts: Mapping[str, int],
    known: Sequence[tuple[str, Drawn | None]],
    meaning: Mapping[str, str] = _MEANING,
) -> Iterator[str]:
    """A line for each class that there is; how many of it did not come out in every draw."""
    for verdict in ORDER:
        if counts[verdict]:
            line = f"  {counts[verdict]:>7,}  {meaning[verdict]}"
            unsure = sum(
                drawn is not None and drawn.agree < drawn.of for v, drawn in known if v == verdict
            )
            yield line + (f", {unsure:,} of them not in every draw" if unsure else "")


def in_draws(drawn: tuple[Drawn, Drawn] | Drawn | None) -> str:
    """`in 7 of 20 draws`, `in 7 to 18 of 20 draws`, or `certain`."""
    if drawn is None:
        return "certain"
    least, most = drawn if isinstance(drawn[0], tuple) else (drawn, drawn)
    if least.agree == least.of:
        return "certain"
    if least == most:
        return f"in {least.agree} of {least.of} draws"
    if least.of == most.of:
        return f"in {least.agree} to {most.agree} of {least.of} draws"
    return f"in {least.agree} of {least.of} draws or more"


def _matrix(answers: Sequence[Answers], out: TextIO) -> None:
    counts = [one.counts() for one in answers]
    shown = [verdict for verdict in ORDER if any(c[verdict] for c in counts)]
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
        shown = groups[:GROUPS_SHOWN]
        headings, rows = _group_rows(shown, answers)
        write_table(headings, rows, out, right=[i for i, h in enumerate(headings) if h in _COUNTS])
        if len(groups) > len(shown):
            out.write(f"and {len(groups) - len(shown):,} more: -o wide, -o markdown or -o json\n")
        out.write("\n")
        out.writelines(for_terminal(line) + "\n" for line in _explained(shown, answers))


#: So many causes by class make a screen; the worst come first.
GROUPS_SHOWN: Final = 8
_COUNTS: Final = ("CRONJOBS", "JOBS")


def _group_rows(
    groups: Sequence[CauseGroup], answers: Answers
) -> tuple[list[str], list[list[str]]]:
    """The table of causes: CronJobs only where there are some, draws only where there are more."""
    cron = bool(answers.cron_jobs)
    draws = any(in_draws(group.drawn) != "certain" for group in groups)
    headings = [
        "CLASS", *(["CRONJOBS"] if cron else []), "JOBS", *(["HOW SURE"] if draws else []),
        "BECAUSE OF", "EXAMPLE",
    ]  # fmt: skip
    rows = [
        [
            group.verdict,
            *([f"{group.cron_jobs:,}"] if cron else []),
            f"{group.jobs:,}",
            *([in_draws(group.drawn)] if draws else []),
            f"{group.cause.kind} {group.cause.name}",
            group.example,
        ]
        for group in groups
    ]
    return headings, rows


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
            how(answer),
            brief(answer.recorded),
            target_brief(answer),
            ", ".join(cause.name for cause in answer.because) or answer.why,
        ]
        for answer in sorted(jobs, key=lambda a: (ORDER.index(a.verdict), a.key))
        if answer.verdict != "same"
    ]
    if rows:
        write_table(["JOB", "CLASS", "HOW", "RECORDED", "TARGET", "BECAUSE OF"], rows, out)


def how(answer: JobAnswer | CronAnswer) -> str:
    """Proved, or by how many runs, and with which lives."""
    if answer.proved:
        return "proved"
    parts = ["extrapolated"] if answer.extrapolated else []
    if answer.drawn is not None and answer.drawn.agree < answer.drawn.of:
        parts.append(in_draws(answer.drawn))
    return ", ".join(parts)


def _cron_jobs(cron_jobs: Iterable[CronAnswer], out: TextIO) -> None:
    rows = [
        [
            answer.key,
            answer.verdict,
            how(answer),
            cron_brief(answer.recorded),
            cron_brief(answer.target),
            ", ".join(cause.name for cause in answer.because) or answer.why,
        ]
        for answer in sorted(cron_jobs, key=lambda a: (ORDER.index(a.verdict), a.key))
        if answer.verdict != "same"
    ]
    if rows:
        out.write("\n")
        write_table(["CRONJOB", "CLASS", "HOW", "RECORDED", "TARGET", "BECAUSE OF"], rows, out)


def cron_brief(course: CronCourse | None) -> str:
    """`12 started, 1 missed`."""
    if course is None:
        return ""
    counts = course.counts.items()
    return ", ".join(f"{n:,} {name}" for name, n in counts if n or name == "started")


def target_brief(answer: JobAnswer) -> str:
    """How a Job goes by the other rules."""
    return "not started" if answer.reason == "not-started" else brief(answer.target)


def brief(course: JobCourse | None) -> str:
    """`Failed DeadlineExceeded after 12 s, 2 pods`."""
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
    counts, cron = answers.counts(), answers.cron_counts()
    for verdict in ORDER:
        if counts[verdict]:
            out.write(f"| {verdict} | {counts[verdict]:,} | {_MEANING[verdict]} |\n")
    if answers.cron_jobs:
        out.write("\n| class | CronJobs | |\n|---|--:|---|\n")
        for verdict in ORDER:
            if cron[verdict]:
                out.write(f"| {verdict} | {cron[verdict]:,} | {_CRON_MEANING[verdict]} |\n")
    groups = cause_groups(answers)
    if groups:
        out.write(
            "\n| class | CronJobs | Jobs | how sure | because of | what changed | example |\n"
            "|---|--:|--:|---|---|---|---|\n"
        )
        for group in groups:
            text = row_text(group.cause, answers)
            about = text.about if text is not None else ""
            link = f" ([upstream]({text.reference}))" if text is not None and text.reference else ""
            cells = [
                group.verdict,
                f"{group.cron_jobs:,}",
                f"{group.jobs:,}",
                in_draws(group.drawn),
                f"{group.cause.kind} `{group.cause.name}`",
                about + link,
                f"`{group.example}`",
            ]
            out.write("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
    out.write("\n")


def render_why(answer: JobAnswer, answers: Answers, out: TextIO) -> None:
    """One Job's two courses, and where and why they part."""
    lines = [f"Job {answer.key} ({answer.uid})"]
    sides = (
        (answers.recorded, answer.recorded, brief(answer.recorded)),
        (answers.target, answer.target, target_brief(answer)),
    )
    for era, course, text in sides:
        if course is not None:
            counts = f"{course.succeeded} succeeded, {course.failed} failed"
            lines.append(f"  {era.version}: {text}, {counts}")
    lines += _reasons(answer, answers)
    out.writelines(for_terminal(line) + "\n" for line in lines)


def render_cron_why(answer: CronAnswer, answers: Answers, out: TextIO) -> None:
    """What one CronJob started by either side, and where and why they part."""
    spec = answer.cron_job.spec
    lines = [f"CronJob {answer.key} ({answer.uid}), {spec.schedule}, {spec.concurrency_policy}"]
    for era, course in ((answers.recorded, answer.recorded), (answers.target, answer.target)):
        if course is not None:
            lines.append(f"  {era.version}: {cron_brief(course)}")
    lines += _reasons(answer, answers)
    for side, starts in zip((answers.recorded, answers.target), answer.only, strict=True):
        if starts:
            lines += ["", f"Only {side.version} starts"]
            lines += [f"  {_start_text(start)}" for start in starts[:_STARTS_TOLD]]
            if len(starts) > _STARTS_TOLD:
                lines.append(f"  and {len(starts) - _STARTS_TOLD:,} more")
    out.writelines(for_terminal(line) + "\n" for line in lines)


#: So many starts of one side alone are listed.
_STARTS_TOLD: Final = 20


def _start_text(start: Start) -> str:
    late_s = (start.started_ns - start.due_ns) // NS_PER_S
    return f"{format_rfc3339(start.due_ns)}  {start.job}, {late_s} s after it was due"


def _reasons(answer: JobAnswer | CronAnswer, answers: Answers) -> list[str]:
    """The class, the steps that differ, and the rows that make them."""
    said = how(answer)
    lines = [
        f"  {answer.verdict}{f' ({said})' if said else ''}{f': {answer.why}' if answer.why else ''}"
    ]
    if isinstance(answer, JobAnswer):
        lines += [f"    {way.times:>3} draws: {brief(way.course)}" for way in answer.courses]
    if answer.differences:
        lines.append("")
    for difference in answer.differences:
        at = format_rfc3339(difference.at_ns) or ""
        mark = "fork" if difference.fork else difference.severity.name.lower()
        lines.append(f"  {at}  {mark:<8}{difference.text}")
    if answer.because:
        lines += ["", "Because of"]
        groups = [CauseGroup(cause, answer.verdict, 1, answer.key) for cause in answer.because]
        known = [f"  {line}" for line in _explained(groups, answers)]
        lines += known or [f"  {cause.kind} {cause.name}" for cause in answer.because]
    return lines


def fails(answers: Iterable[Answers], fail_on: str) -> bool:
    """Whether a Job or a CronJob differs as badly as that, or worse."""
    limit = severity_of(fail_on)
    return any(one.worst() >= limit for one in answers)
