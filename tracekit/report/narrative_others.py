"""Steps of an account that come from beyond the Job controller's syncs. Pure.

A CronJob's own story: its spec and what changed in it, every tick and what became of it; what the
CronJob and TTL controllers did; and the restarts of the controller manager, which cost the
controllers their memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tracekit.answers.findings.cron_stalls import read_schedule
from tracekit.answers.words import clock
from tracekit.base.cron import CronSpecError, EverySchedule, Generation
from tracekit.base.cron.zones import UnknownZoneError, load_zone
from tracekit.base.durations import span
from tracekit.base.kube.stored import spec_of
from tracekit.base.numbers import whole_number
from tracekit.check.replay.run_context import Outage
from tracekit.check.verdict import Judgement, Verdict
from tracekit.report.narrative import (
    Narrative,
    Step,
    api_value,
    field_edit,
    in_order,
    not_seen,
    who_else,
)
from tracekit.report.narrative_closing import contradicted

_VERBS = {
    "job-create": "created Job",
    "job-delete": "deleted Job",
    "status-update": "wrote the",
    "event": "emitted an Event:",
}
#: What decides about ticks and Jobs, in the order in which it is told.
_CRON_SPEC = (
    "schedule", "timeZone", "suspend", "concurrencyPolicy", "startingDeadlineSeconds",
    "successfulJobsHistoryLimit", "failedJobsHistoryLimit",
)  # fmt: skip


def narrative_of_cronjob(
    namespace: str,
    name: str,
    ticks: Iterable[Mapping[str, Any]],
    revisions: Iterable[Mapping[str, Any]] = (),
    judgements: Iterable[Judgement] = (),
    *,
    generation: Generation = Generation.GEN3,
    process_zone: str = "UTC",
) -> Narrative:
    """The account of a CronJob out of its rows of `cron_ticks` and of its revisions (times in ns).

    A revision needs `recv_ns`, `rv`, `type`, `spec` (JSON text), and may have `by`, who wrote it;
    `judgements` are those about it. Its schedule is read as that generation of the cron library
    does, in the zone of the controller manager where it has none of its own.
    """
    narrative = Narrative("CronJob", namespace, name, judgements=list(judgements))
    outcomes: Counter[str] = Counter()
    for tick in ticks:
        outcomes[tick["outcome"]] += 1
        rule = f"rule: {tick['policy']}" if tick["policy"] else "rule: none that the record shows"
        narrative.steps.append(
            Step(
                tick["due_ns"],
                None,
                "tick",
                f"{tick['outcome']}" + (f": Job {tick['job']}" if tick["job"] else ""),
                (f"schedule: {tick['schedule']}", rule, f"because {tick['why']}"),
                how=(rule,),
            )
        )
    revisions = [*revisions]
    narrative.steps = in_order([*narrative.steps, *_spec_steps(revisions)])
    parts = ", ".join(f"{n} {outcome}" for outcome, n in sorted(outcomes.items()))
    parts = parts or f"none{_next_due(revisions, generation, process_zone)}"
    verdict = contradicted(narrative.divergences)
    narrative.closing = f"Ticks while it was recorded: {parts}; {verdict}."
    return narrative


def _next_due(
    revisions: Sequence[Mapping[str, Any]], generation: Generation, process_zone: str
) -> str:
    """When a CronJob is due after its last revision; nothing where it is gone or suspended."""
    if not revisions or revisions[-1]["type"] == "DELETED":
        return ""
    last = revisions[-1]
    spec = spec_of("cronjobs", last["spec"])
    if spec.get("suspend") is True:
        return ""
    named = spec.get("timeZone")
    try:
        schedule, zone = read_schedule(str(spec.get("schedule") or ""), named, generation)
    except (CronSpecError, UnknownZoneError, ValueError):
        return ""
    zone = zone if named else load_zone(process_zone)
    due_ns = schedule.next_ns(last["recv_ns"] or 0, zone=zone)
    if due_ns is None or isinstance(schedule, EverySchedule):
        return ""
    text = str(spec["schedule"])
    unnamed = "" if "TZ=" in text else f" in {process_zone}, as it has no timeZone"
    where = f" in {named}" if named else unnamed
    return f", next due {clock(due_ns)} ({text}{where})"


def _spec_steps(revisions: Iterable[Mapping[str, Any]]) -> Iterator[Step]:
    before: Mapping[str, Any] | None = None
    for row in revisions:
        at_ns, rv = row["recv_ns"] or 0, row["rv"]
        if row["type"] == "DELETED":
            yield Step(at_ns, rv, "CronJob", "is gone")
            continue
        spec = spec_of("cronjobs", row["spec"])
        if before is None:
            seen = "was created" if row["type"] == "ADDED" else "is there at the first list"
            parts = ", ".join(f"{key} {api_value(spec[key])}" for key in _CRON_SPEC if key in spec)
            yield Step(at_ns, rv, "CronJob", seen, (parts,))
        elif changes := [
            field_edit(key, before.get(key), spec.get(key))
            for key in _CRON_SPEC
            if before.get(key) != spec.get(key)
        ]:
            who = row.get("by") or "somebody"
            yield Step(at_ns, rv, who, "changed the CronJob", tuple(changes))
        before = spec


def add_judgements(narrative: Narrative, judgements: Iterable[Judgement]) -> None:
    """Tell what controllers other than the Job's did, each with its verdict and why.

    A deletion is told once: by the controller whose rules ask for it, where one's do, and not as
    the change that it made to the Job, too.
    """
    deletions: dict[str, list[Judgement]] = {}
    others = []
    for judgement in judgements:
        if (
            judgement.action == "job-delete"
            and whole_number(judgement.resource_version) is not None
        ):
            deletions.setdefault(judgement.resource_version, []).append(judgement)
        else:
            others.append(judgement)
    shown = [
        min(found, key=lambda judgement: judgement.verdict in (Verdict.FOREIGN, Verdict.UNKNOWABLE))
        for found in deletions.values()
    ]
    asked = {step.rv: step for step in narrative.steps if step.asks_deletion}
    kept = [s for s in narrative.steps if not s.asks_deletion or str(s.rv) not in deletions]
    steps = [_step(judgement, None) for judgement in others]
    for judgement in shown:
        change = asked.get(int(judgement.resource_version))
        known = None if change is None or change.who == "somebody" else change.who
        steps.append(_step(judgement, known))
    narrative.steps = in_order([*kept, *steps])


def _step(judgement: Judgement, by: str | None) -> Step:
    rv = whole_number(judgement.resource_version)
    who = f"{judgement.controller}-controller"
    match judgement.verdict:
        case Verdict.FOREIGN | Verdict.UNKNOWABLE:
            who = by or who_else(judgement)
    if judgement.verdict is Verdict.MISSING:
        what = not_seen(judgement)
    else:
        verb = _VERBS.get(judgement.action, f"did {judgement.action} of")
        what = f"{verb} {judgement.subject}".rstrip()
    return Step(
        judgement.time_ns,
        rv,
        who,
        what,
        (f"because {judgement.why}",),
        judgement.verdict.value,
    )


def add_restarts(narrative: Narrative, restarts: Iterable[Outage]) -> None:
    """Tell the restarts of the controller manager that fall into the account's time."""
    if not narrative.steps:
        return
    first_ns, last_ns = narrative.steps[0].at_ns, narrative.steps[-1].at_ns
    steps = [
        Step(
            restart.until_ns,
            None,
            "kube-controller-manager",
            f"led again, {span(restart.until_ns - restart.from_ns)} after the last sign of the one "
            "before",
            ("its memory is empty (expectations, back-off), its caches are listed anew",),
        )
        for restart in restarts
        if first_ns <= restart.until_ns and restart.from_ns <= last_ns
    ]
    narrative.steps = in_order([*narrative.steps, *steps])
