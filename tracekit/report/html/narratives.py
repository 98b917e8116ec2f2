"""The accounts of Jobs that a report carries: of those in trouble first, as many as have room."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from tracekit.answers.findings.diagnosis import Diagnosed
from tracekit.answers.model import Finding
from tracekit.base.errors import TracekitError
from tracekit.check.diff.forced import with_forced
from tracekit.check.diff.trace import judge_groups
from tracekit.check.replay.feed import COLUMNS
from tracekit.check.verdict import Judgement
from tracekit.judge.clocks import on_clock
from tracekit.judge.run_context import whole_context
from tracekit.report.narrative import Narrative, narrative_of_job
from tracekit.report.narrative_others import add_judgements, add_restarts
from tracekit.sql.asked_judgements import AskedJudgements
from tracekit.sql.computed import era_of
from tracekit.sql.session import Session
from tracekit.trace.reading.selection import Keys
from tracekit.versions.job import JobRules

#: So many Jobs get an account, and so many steps are in all of them together.
MAX_ACCOUNTS = 400
MAX_STEPS = 12_000

Milliseconds = Callable[[int | None], float | None]
Key = tuple[str, str]


class Narratives:
    """The accounts of the Jobs of one report."""

    def __init__(
        self,
        session: Session,
        diagnosed: Diagnosed,
        found: Sequence[Finding],
        jobs: frozenset[Key] | None,
        conclusions: Mapping[Key, str],
        problems: list[str],
    ) -> None:
        """`jobs` are those that the report is about; None: all. What came of each is known."""
        self._conclusions = conclusions
        self._narratives: dict[Key, Narrative] = {}
        if diagnosed.not_judged is None and not session.problems and session.sources:
            order = _order(diagnosed, found, jobs)
            self._judge(session, set(order[:MAX_ACCOUNTS]))
            left = len(order) - len(self._narratives)
            if self._narratives and left > 0:
                problems.append(
                    f"{left:,} Jobs have no account here, as those in trouble come first: "
                    "tracekit explain tells each"
                )

    def of_job(self, namespace: str, name: str, ms: Milliseconds) -> Mapping[str, Any] | None:
        """One Job's account as plain data; None where it had no room."""
        narrative = self._narratives.get((namespace, name))
        if narrative is None:
            return None
        return {
            "steps": [
                [ms(step.at_ns), step.rv, step.who, step.what, list(step.details), step.verdict]
                for step in narrative.steps
            ],
            "opening": narrative.opening,
            "closing": narrative.closing,
        }

    def _judge(self, session: Session, wanted: set[Key]) -> None:
        about: dict[Key, list[Judgement]] = {}
        for judgement in AskedJudgements(session).naming(wanted):
            where = judgement.object
            name = where.name if where.kind == "Job" else judgement.subject
            about.setdefault((where.namespace, name), []).append(judgement)
        reader = session.sources[0].reader()
        around = whole_context(reader).watching("jobs", "pods")
        try:
            rules = JobRules.of(era_of(reader, session.rules))
        except TracekitError:
            return
        groups = on_clock(reader.groups(COLUMNS, keys=Keys(tuple(sorted(wanted)))), around.clock)
        steps = 0
        for judged in judge_groups(groups, rules, around):
            key = (judged.replay.history.namespace, judged.replay.history.name)
            if steps > MAX_STEPS:
                break
            mine = about.get(key, [])
            ours = tuple(j for j in mine if j.controller == "job")
            known = with_forced(replace(judged, judgements=ours), rules, around)
            narrative = narrative_of_job(known, mine, around.coverage)
            add_judgements(narrative, [j for j in mine if j.controller != "job"])
            add_restarts(narrative, around.restarts)
            narrative.opening = self._conclusions.get(key, "")
            steps += len(narrative.steps)
            self._narratives[key] = narrative


def _order(
    diagnosed: Diagnosed, found: Sequence[Finding], jobs: frozenset[Key] | None
) -> list[Key]:
    """The Jobs whose accounts are told: those of findings, then those that failed, then others."""
    order: dict[Key, None] = {}
    for finding in found:
        for target in finding.objects:
            if target.kind == "Job":
                order[target.namespace, target.name] = None
    for job in sorted(diagnosed.jobs, key=lambda j: (not j.has_failed, j.created_ns)):
        order[job.namespace, job.name] = None
    return [key for key in order if jobs is None or key in jobs]
