"""A trace with its verdicts: which era it is of, and what the ported controllers say of it.

This is where a reader of traces and the pure rooms meet: commands, views of SQL and the Python API
all judge through here, so that the same trace has the same verdicts everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace as replace_era

from tracekit.diff.trace import ACTIONS, DiffReport, diff_groups
from tracekit.eras.cronjob import CronJobEra
from tracekit.eras.detect import Detection
from tracekit.eras.era import Era, nearest_known
from tracekit.eras.inferred_gates import ShownGate
from tracekit.eras.job import JobRules
from tracekit.eras.recorded_gates import reconcile_gates
from tracekit.eras.texts import parse_feature_gates, parse_version
from tracekit.eras.version import KubeVersion
from tracekit.errors import UnsupportedVersionError, UsageError
from tracekit.replay.cron_runner import CronRunner
from tracekit.replay.feed import COLUMNS
from tracekit.replay.observed_cronjob import judge_cron_jobs
from tracekit.replay.observed_ttl import judge_ttl
from tracekit.trace.cron_rows import cron_rows
from tracekit.trace.detected import detected_gates, detected_version
from tracekit.trace.reader import TraceReader
from tracekit.trace.run_context import run_context_of
from tracekit.verdict import Judgement


def resolve_era(
    reader: TraceReader, kubernetes_version: str | None, feature_gates: str | None
) -> Era:
    """The era of a trace: what the command line says, else what the trace says or shows.

    Only what the command line says can be refused; a gate of the trace that its version does not
    allow is a warning of the era.
    """
    text = parse_version(kubernetes_version)
    named = KubeVersion.parse(text) if text is not None else None
    recorded = _recorded_version(reader, needed=named is None)
    typed = parse_feature_gates(feature_gates)
    version, warnings = named or recorded, tuple[str, ...]()
    if version is None:
        found = _detected(reader)
        version, warnings = found.best, (_says_no_version(found),)
    brought = reconcile_gates(
        reader.header.feature_gates,
        nearest_known(version),
        recorded_at=recorded,
    )
    gates = brought.settings | typed
    era = Era.resolve(version, gates)
    warnings = (*era.warnings, *warnings, *brought.warnings)
    what_if = named is not None and recorded is not None and named != recorded
    if not what_if:  # else the objects show the gates of another version
        shown = [gate for gate in detected_gates(reader, era) if gate.gate.value not in gates]
        if shown:
            settings = {**gates, **{gate.gate.value: gate.on for gate in shown}}
            era = replace_era(Era.resolve(era.basis, settings), version=era.version)
            warnings = (*warnings, _objects_show(shown))
    return replace_era(era, warnings=warnings)


def _recorded_version(reader: TraceReader, *, needed: bool) -> KubeVersion | None:
    """The version that the trace says; one that is none matters only where it is needed."""
    text = reader.header.kubernetes_version
    try:
        return KubeVersion.parse(text) if text is not None else None
    except UnsupportedVersionError:
        if needed:
            raise
        return None


def _detected(reader: TraceReader) -> Detection:
    """The versions that the objects of a trace fit which does not say its own."""
    found = detected_version(reader)
    if not found.evidence:
        raise UsageError(
            "the trace does not say which Kubernetes version it is from, nor do its objects: name "
            "it with --kubernetes-version v1.36.3"
        )
    return found


def _says_no_version(found: Detection) -> str:
    return (
        "the trace does not say which Kubernetes version it is from; its objects fit "
        f"{found.describe()}; the rules of {found.best} are used, "
        "--kubernetes-version names another."
    )


def _objects_show(shown: Sequence[ShownGate]) -> str:
    return (
        f"the objects of the trace show feature gates {', '.join(g.describe() for g in shown)}: "
        "taken as such, --feature-gates sets them otherwise."
    )


def run_diff(
    reader: TraceReader,
    era: Era,
    *,
    namespace: str | None = None,
    job: str | None = None,
    controllers: Sequence[str] = tuple(ACTIONS),
) -> DiffReport:
    """Judge a trace, or a part of it."""
    name = None
    if job is not None:
        space, slash, name = job.partition("/")
        if not slash or not space or not name:
            raise UsageError(f"{job!r} is no Job: write it like NAMESPACE/NAME")
        if namespace is not None and namespace != space:
            raise UsageError(f"--job {job} is not in the namespace {namespace}: leave out -n")
        namespace = space
    groups = reader.groups(COLUMNS, namespace=namespace)
    if name is not None:
        groups = (group for group in groups if group.job in (None, name))
    if "job" not in controllers:
        groups = iter(())
    report = diff_groups(groups, JobRules.of(era), run_context_of(reader), observations=reader.rows)
    report.add(
        judgement
        for judgement in _other_controllers(reader, era, controllers)
        if (namespace is None or judgement.object.namespace == namespace)
        and (name is None or name in (judgement.object.name, judgement.subject))
    )
    if job is not None and report.keys == 0 and not report.judgements:
        raise UsageError(f"the trace has no Job {job}: `tracekit info` lists what it has")
    return report


def _other_controllers(
    reader: TraceReader, era: Era, controllers: Sequence[str]
) -> Iterator[Judgement]:
    """The judgements of the CronJob and the TTL controller."""
    if not {"cronjob", "ttl"} & set(controllers):
        return
    rows, around = cron_rows(reader)
    rules = CronJobEra.of(era)
    if "cronjob" in controllers:
        yield from judge_cron_jobs(rows, CronRunner(rules), around)
    if "ttl" in controllers:
        yield from judge_ttl(rows, rules, around)
