"""What a what-if's page shows, as plain data: causes, and the two courses of what differs most.

Times of a Job are milliseconds since its creation; those of a CronJob since 1970.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from tracekit.answers.whatif.answers import Answers, JobAnswer, severity_of
from tracekit.answers.whatif.course import JobCourse
from tracekit.answers.whatif.cron_answers import CronAnswer
from tracekit.answers.whatif.cron_course import CronCourse
from tracekit.answers.whatif.lanes import LANES_MAX, PodLane
from tracekit.answers.whatif.steps import Severity
from tracekit.report.html.data import PHASES
from tracekit.report.whatif import brief, cron_brief, how, in_draws, setting_names, target_brief
from tracekit.report.whatif_document import ORDER, cause_groups, row_text
from tracekit.versions.era import Era

#: So many Jobs and CronJobs are drawn, the worst first; so many others are listed.
DRAWN_MAX: Final = 200
LISTED_MAX: Final = 1_000
#: Of one CronJob so many ticks are drawn, around the first that differs.
TICKS_MAX: Final = 240
_MS: Final = 1_000_000
#: Shorter times without a pod are not drawn: the API keeps a Job's end in whole seconds.
_WAIT_NS: Final = 1_100 * _MS

Answer = JobAnswer | CronAnswer


def whatif_data(answers: Sequence[Answers], trace: str) -> dict[str, Any]:
    """Everything that the page needs; one target after the other."""
    return {
        "schema_version": 1,
        "trace": trace.rpartition("/")[2] or trace,
        "path": trace,
        "title": f"{answers[0].recorded.version} → {', '.join(map(_version, answers))}",
        "from": str(answers[0].recorded.version),
        "start_ns": "0",
        "phases": PHASES,
        # The scripts that all pages share look these up.
        "jobs": [],
        "crons": [],
        "findings": [],
        "targets": [_target(one) for one in answers],
    }


def _version(answers: Answers) -> str:
    return str(answers.target.version)


def _target(answers: Answers) -> dict[str, Any]:
    every: list[Answer] = [*answers.cron_jobs, *answers.jobs]
    every.sort(key=lambda a: (ORDER.index(a.verdict), a.key))
    differing = [a for a in every if severity_of(a.verdict) >= Severity.TIMING]
    drawn = differing[:DRAWN_MAX]
    others = [a for a in every if a.verdict != "same" and a not in drawn]
    return {
        "to": _version(answers),
        "options": _options(answers),
        "settings": setting_names(answers),
        "draws": answers.draws,
        "calibrated": answers.calibrated,
        "counts": answers.counts(),
        "cronjob_counts": answers.cron_counts(),
        "causes": list(_causes(answers)),
        "drawn": [_card(a, place, answers) for place, a in enumerate(drawn)],
        "left": len(differing) - len(drawn),
        "others": [_line(a) for a in others[:LISTED_MAX]],
        "others_left": max(0, len(others) - LISTED_MAX),
    }


def _options(answers: Answers) -> list[str]:
    """The options by which `whatif` is asked the same."""
    found = ["--kubernetes-version", _version(answers)]
    for setting in answers.settings:
        found += ["--set", setting.name]
    for cron_setting in answers.cron_settings:
        found += ["--set-cron", cron_setting.name.removeprefix("cronjob ")]
    return found


def _causes(answers: Answers) -> Iterable[dict[str, Any]]:
    for group in cause_groups(answers):
        text = row_text(group.cause, answers)
        yield {
            "kind": group.cause.kind,
            "name": group.cause.name,
            "verdict": group.verdict,
            "jobs": group.jobs,
            "cronjobs": group.cron_jobs,
            "example": group.example,
            "sure": in_draws(group.drawn) if answers.draws > 1 else "",
            "about": text.about if text is not None else "",
            "reference": text.reference if text is not None else "",
            "keeps_old": text.keeps_old if text is not None else "",
            "left": text.left if text is not None else "",
            "right": text.right if text is not None else "",
        }


def _line(answer: Answer) -> list[str]:
    kind = "CronJob " if isinstance(answer, CronAnswer) else ""
    because = ", ".join(cause.name for cause in answer.because) or answer.why
    sides: list[str] = []
    if isinstance(answer, CronAnswer):
        sides = [cron_brief(answer.recorded), cron_brief(answer.target)]
    else:
        sides = [brief(answer.recorded), target_brief(answer)]
    return [f"{kind}{answer.key}", answer.verdict, how(answer), *sides, because]


def _card(answer: Answer, place: int, answers: Answers) -> dict[str, Any]:
    found: dict[str, Any] = {
        "place": place,
        "key": answer.key,
        "verdict": answer.verdict,
        "how": how(answer),
        "why": answer.why,
        "because": [cause.name for cause in answer.because],
    }
    if isinstance(answer, CronAnswer):
        return {**found, "kind": "CronJob", **_cron_courses(answer, answers)}
    return {**found, "kind": "Job", **_job_courses(answer, answers)}


# Jobs.


def _job_courses(answer: JobAnswer, answers: Answers) -> dict[str, Any]:
    old = answer.baseline or answer.recorded
    lanes = answer.lanes or ((), ())
    new_lanes = lanes[1] if not answer.proved else lanes[0]
    born_ns = answer.job.created_ns
    sides = [(answers.recorded, old, lanes[0], answer.baseline is not None)]
    if answer.target is not None:
        modelled = not answer.proved and answer.reason != "not-started"
        sides.append((answers.target, answer.target, new_lanes, modelled))
    span_ns = max(
        [1_000 * _MS]
        + [int((course.finished_after_s or 0) * 1_000) * _MS for _, course, _, _ in sides]
        + [_lane_end(lane) - born_ns for _, course, own, _ in sides for lane in _lanes(course, own)]
    )
    courses = [_job_course(*side, born_ns, span_ns) for side in sides]
    if answer.target is not None:
        courses[-1]["text"] = target_brief(answer)
    return {"span_ms": span_ns // _MS, "courses": courses}


def _lanes(course: JobCourse, lanes: Sequence[PodLane]) -> Sequence[PodLane]:
    """The lanes whose end matters to the scale: those of a Job that ended, ended pods of others."""
    return [lane for lane in lanes if course.ended is not None or lane.ended is not None]


def _lane_end(lane: PodLane) -> int:
    return max([lane.ended_ns or 0, *(span.until_ns for span in lane.spans)])


def _job_course(
    era: Era,
    course: JobCourse,
    lanes: Sequence[PodLane],
    modelled: bool,
    born_ns: int,
    span_ns: int,
) -> dict[str, Any]:
    def ms(at_ns: int) -> float:
        return round((min(at_ns, born_ns + span_ns) - born_ns) / _MS, 1)

    end_ms = None if course.finished_after_s is None else course.finished_after_s * 1_000
    return {
        "version": str(era.version),
        "text": brief(course),
        "model": "in the model" if modelled else "",
        "ended": course.ended,
        "end_ms": end_ms,
        "more": max(0, course.pods - LANES_MAX) if lanes else 0,
        "lanes": [
            [
                lane.name,
                lane.completion_index,
                [[s.phase, ms(s.from_ns), ms(s.until_ns)] for s in lane.spans],
                lane.ended,
                ms(lane.ended_ns) if lane.ended_ns is not None else None,
                lane.exit_code,
                lane.reason,
            ]
            for lane in lanes
        ],
        "waits": [[ms(a), ms(b)] for a, b in _waits(lanes, born_ns, end_ms)],
    }


def _waits(
    lanes: Sequence[PodLane], born_ns: int, end_ms: float | None
) -> Iterable[tuple[int, int]]:
    """Times between the Job's creation and its end in which none of its pods was there."""
    alive = sorted(
        (min(s.from_ns for s in lane.spans), _lane_end(lane)) for lane in lanes if lane.spans
    )
    at_ns = born_ns
    for from_ns, until_ns in alive:
        if from_ns - at_ns > _WAIT_NS:
            yield at_ns, from_ns
        at_ns = max(at_ns, until_ns)
    if end_ms is not None and born_ns + end_ms * _MS - at_ns > _WAIT_NS:
        yield at_ns, int(born_ns + end_ms * _MS)


# CronJobs.


def _cron_courses(answer: CronAnswer, answers: Answers) -> dict[str, Any]:
    old = answer.baseline or answer.recorded
    sides = [(answers.recorded, old, answer.baseline is not None)]
    if answer.target is not None:
        sides.append((answers.target, answer.target, not answer.proved))
    first_ns = _first_apart(old, answer.target)
    windows = [_window(course, first_ns) for _, course, _ in sides]
    dues = [tick.due_ns for window in windows for tick in window] or [0]
    ends = dues + [tick.started_ns or 0 for window in windows for tick in window]
    from_ns, until_ns = min(dues), max(ends)
    return {
        "from_ms": from_ns // _MS,
        "span_ms": max(1_000, (until_ns - from_ns) // _MS),
        "courses": [
            {
                "version": str(era.version),
                "text": cron_brief(course),
                "model": "in the model" if modelled else "",
                "more": len(course.ticks) - len(window),
                "ticks": [
                    [
                        tick.due_ns // _MS,
                        tick.outcome,
                        tick.job,
                        None if tick.started_ns is None else tick.started_ns // _MS,
                        tick.why if tick.outcome != "started" else "",
                    ]
                    for tick in window
                ],
            }
            for (era, course, modelled), window in zip(sides, windows, strict=True)
        ],
    }


def _first_apart(old: CronCourse, new: CronCourse | None) -> int:
    """The due time of the first tick that differs; 0 if none does."""
    others = {tick.due_ns: tick.outcome for tick in new.ticks} if new is not None else {}
    apart = (tick.due_ns for tick in old.ticks if others.get(tick.due_ns) != tick.outcome)
    return next(apart, 0)


def _window(course: CronCourse, first_ns: int) -> Sequence[Any]:
    ahead = sum(tick.due_ns < first_ns for tick in course.ticks)
    begin = max(0, min(ahead - TICKS_MAX // 6, len(course.ticks) - TICKS_MAX))
    return course.ticks[begin : begin + TICKS_MAX]
