"""The data of a large page in parts: what is drawn at once, and what a Job shows when it is opened.

A browser takes a few megabytes apart in a moment. The accounts, revisions and writes of ten
thousand Jobs are many times that, so they lie packed beside it, some hundred Jobs together, until
one of these Jobs is opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: The details of so many Jobs are one part.
JOBS_OF_A_PART = 200
#: What a Job shows once it is opened; `actions` and the diffs of its pods besides.
_DETAILS = ("account", "history", "events", "logs")
#: What tells of the whole, and is asked for.
_APART = ("happenings", "writes")
_UID, _NAME = 0, 1


def in_parts(data: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is drawn at once, and the parts by name."""
    jobs, details = [], []
    for place, job in enumerate(data["jobs"]):
        details.append(details_of(job, data["pod_diffs"]))
        part = [place // JOBS_OF_A_PART, place % JOBS_OF_A_PART]
        jobs.append({**drawn(job, data["pod_diffs"]), "part": part})
    starts = range(0, len(details), JOBS_OF_A_PART)
    parts: dict[str, Any] = {
        f"jobs-{number}": details[start : start + JOBS_OF_A_PART]
        for number, start in enumerate(starts)
    }
    parts |= {name: data[name] for name in _APART if data.get(name) is not None}
    core = {name: value for name, value in data.items() if name not in parts}
    return {**core, "jobs": jobs, "pod_diffs": {}}, parts


def drawn(job: Mapping[str, Any], pod_diffs: Mapping[str, Any]) -> dict[str, Any]:
    """What is drawn of a Job: of its writes the times alone, and no uid that nothing goes by.

    Of times stands how many microseconds they are after the time before, of writes milliseconds:
    in digits that differ from all others nothing can be packed.
    """
    left = {name: value for name, value in job.items() if name not in (*_DETAILS, "actions")}
    start_us = _us(job["created"] or 0)
    left["pods"] = [
        [pod[_UID] if pod[_UID] in pod_diffs else None, *pod[_NAME:-1], _spans(pod[-1], start_us)]
        for pod in job["pods"]
    ]
    left["writes"] = _steps([round(action[0]) for action in job["actions"]], start_us // 1000)
    return left


def details_of(job: Mapping[str, Any], pod_diffs: Mapping[str, Any]) -> dict[str, Any]:
    """The rest of it. A write to one of its pods names the place of the pod."""
    places = {pod[_NAME]: place for place, pod in enumerate(job["pods"])}
    actions = job["actions"]
    times = _steps([_us(action[0]) for action in actions], _us(job["created"] or 0))
    revisions = _steps([action[-1] for action in actions], 0)
    return {
        **{name: job[name] for name in _DETAILS},
        "actions": [
            [step_us, action, places.get(target, target), actor, step]
            for step_us, (_, action, target, actor, _), step in zip(
                times, actions, revisions, strict=True
            )
        ],
        "pod_diffs": {p[_UID]: pod_diffs[p[_UID]] for p in job["pods"] if p[_UID] in pod_diffs},
    }


def _spans(spans: Sequence[Sequence[Any]], start_us: int) -> list[Any]:
    """Code, beginning and end of each span, one after the other."""
    times = [None if at_ms is None else _us(at_ms) for span in spans for at_ms in span[1:]]
    steps = _steps(times, start_us)
    return [
        item
        for place, span in enumerate(spans)
        for item in (span[0], steps[2 * place], steps[2 * place + 1])
    ]


def _steps(values: Sequence[int | None], before: int) -> list[int | None]:
    """Each value by how much it is more than the one before; None stays None."""
    steps: list[int | None] = []
    for value in values:
        steps.append(None if value is None else value - before)
        before = before if value is None else value
    return steps


def _us(at_ms: float) -> int:
    return round(at_ms * 1000)
