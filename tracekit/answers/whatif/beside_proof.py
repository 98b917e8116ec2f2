"""A proof and the runs of the model beside it: which of them is told."""

from __future__ import annotations

from msgspec.structs import replace

from tracekit.answers.whatif.answers import Drawn, JobAnswer, Way, difference_class, severity_of
from tracekit.answers.whatif.course import counted
from tracekit.answers.whatif.steps import Severity
from tracekit.versions.era import Era
from tracekit.versions.job import JobRules


def outdone(proved: JobAnswer, modelled: JobAnswer) -> bool:
    """Whether a run of the model says more than the steps prove.

    Steps are taken at the times of the record. Where the other rules' queue serves a Job at other
    times, the model that reproduces the record may find what no step shows.
    """
    if modelled.verdict == "unknowable":
        return modelled.reason == "censored"
    severity = severity_of(modelled.verdict)
    return severity >= Severity.TIMING and severity > severity_of(proved.verdict)


def with_lots(proved: JobAnswer, modelled: JobAnswer, recorded: Era) -> JobAnswer:
    """What the steps prove, with the courses of the runs: which status is written last is chance.

    The steps are those of one course, and another run of the very same rules may take another.
    """
    usual = modelled.target
    if not modelled.courses or usual is None:
        return proved
    whose = "both" if JobRules.of(recorded).overwrites_status else "the other"
    severity = max(severity_of(proved.verdict), difference_class(proved.recorded, usual))
    if severity >= Severity.TIMING:
        return proved
    return replace(
        proved,
        verdict=severity.name.lower(),
        proved=False,
        why=f"which of its last statuses stays is chance, by {whose} rules",
        baseline=modelled.baseline,
        target=usual,
        drawn=modelled.drawn,
        courses=modelled.courses,
    )


def on_time(proved: JobAnswer, modelled: JobAnswer) -> JobAnswer:
    """What the steps prove of a Job, with the courses of runs in which it is served at other times.

    The rules do the same, so its class stays, and so does what it comes to: a real control plane
    took that course once, which says more than what most runs of a model take. It counts as one
    draw where no run takes it.
    """
    own = proved.target or proved.recorded
    usual = modelled.target
    ways = modelled.courses or (
        (Way(usual, modelled.drawn.of),) if usual and modelled.drawn else ()
    )
    if all(counted(way.course) != counted(own) for way in ways):
        ways = (*ways, Way(own, 1))
    if len(ways) == 1:
        return proved
    times = next(way.times for way in ways if counted(way.course) == counted(own))
    return replace(
        proved,
        proved=False,
        why="how it goes hangs on when it is served, by the same rules",
        baseline=modelled.baseline,
        target=own,
        drawn=Drawn(times, sum(way.times for way in ways)),
        courses=tuple(sorted(ways, key=lambda way: -way.times)),
    )
