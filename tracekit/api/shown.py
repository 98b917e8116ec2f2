"""The account of an object out of what has no states: nothing of it is judged.

That is what kubectl printed for people, or an audit log without bodies.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.answers.happening import Happening
from tracekit.answers.model import Finding
from tracekit.answers.shown_steps import Owners, steps_of
from tracekit.answers.trace_model import Seen
from tracekit.base.time_input import TimeRange, time_range
from tracekit.report.findings import finding_document
from tracekit.report.narrative import Narrative, Step
from tracekit.sql.findings import findings_of
from tracekit.sql.object_findings import finding_lines
from tracekit.sql.session import Session
from tracekit.sql.shown_texts import shown_in
from tracekit.sql.timeline import timeline_of
from tracekit.trace.reading.objects import Objects


def account_of_shown(
    session: Session,
    key: str,
    namespace: str | None,
    trace: str,
    why: str,
    *,
    since: str | float | None = None,
    from_: str | int | None = None,
    to: str | int | None = None,
) -> Narrative:
    """What was shown and told of a Job, a CronJob or a pod, with what belongs to it.

    `trace` is what the reader calls it, `why` says why nothing is judged; `since`, `from_` and
    `to` are as in `Trace.explain`.

    Raises:
        UsageError: Nothing of that name was shown, or the time cannot be read.
    """
    shown = list(shown_in(session))
    if shown:
        kind, space, name = _named(shown, key, namespace)
        steps = [step for step in steps_of(shown) if _belongs(step, kind, space, name)]
        why = f"{why}; ages are rounded, and times by them"
    else:
        space, name = session.objects.key(key, namespace)
        kind = "Job" if (space, name) in session.objects.jobs else "CronJob"
        steps = list(_requests(session, (space, name)))
    narrative = Narrative(kind, space, name, [_step(one, kind, name) for one in steps])
    narrative.closing = f"Nothing of it is judged: {why}."
    within = time_range(session.end_ns, since=since, from_=from_, to=to)
    if within.until_ns is not None and within.until_ns >= session.end_ns:
        within = TimeRange(within.from_ns, None)  # nothing of the text lies behind it
    narrative = narrative.within(within) if within else narrative
    if within.until_ns is None:
        places = {(step.kind, step.namespace, step.name) for step in steps}
        found = [f for f in findings_of(session) if _is_about(f, places)]
        narrative.findings = [finding_document(finding, trace) for finding in found]
        narrative.finding_lines = finding_lines(found, kind, space, name, trace)
    return narrative


def _requests(session: Session, key: tuple[str, str]) -> Iterator[Happening]:
    """What a log tells of requests for a Job or CronJob and what belongs to it, in order."""
    found = timeline_of(session, key=key)
    for one in sorted(found, key=lambda one: (one.at_ns, one.kind, one.name)):
        yield Happening(
            one.at_ns, one.kind, one.namespace, one.name, one.what, one.who, one.is_trouble,
            one.job, one.cronjob,
        )  # fmt: skip


def _named(shown: list[Seen], key: str, namespace: str | None) -> tuple[str, str, str]:
    """Kind, namespace and name of what a user names; a pod stands for its Job where it has one."""
    owners = Owners(shown)
    pods = ((*pod, owners.job_of("Pod", *pod) or pod[1]) for pod in sorted(owners.pods))
    known = Objects(tuple(sorted(owners.jobs)), tuple(sorted(owners.cronjobs)), tuple(pods))
    place = known.key(key, namespace)
    kind = "Job" if place in owners.jobs else "CronJob" if place in owners.cronjobs else "Pod"
    return (kind, *place)


def _belongs(step: Happening, kind: str, namespace: str, name: str) -> bool:
    if step.namespace != namespace:
        return False
    if kind == "Pod":
        return (step.kind, step.name) == (kind, name)
    return name == (step.job if kind == "Job" else step.cronjob)


def _is_about(finding: Finding, places: set[tuple[str, str, str]]) -> bool:
    return any((t.kind, t.namespace, t.name) in places for t in finding.objects)


def _step(step: Happening, kind: str, name: str) -> Step:
    own = (step.kind, step.name) == (kind, name)
    who = step.kind if own else f"{step.kind} {step.name}"
    by = f" (by {step.who})" if step.who else ""
    return Step(step.at_ns, None, f"{who}:", f"{step.what}{by}")
