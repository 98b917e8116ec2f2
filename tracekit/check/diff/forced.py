"""Whether nothing else that the caches may have held explains what a key's syncs wrote.

It takes about a third as long as to judge the key, so it is done where one Job is told of.
"""

from __future__ import annotations

from msgspec.structs import replace

from tracekit.check.diff.job_verdicts import place_of
from tracekit.check.diff.judge import KeyJudgement
from tracekit.check.replay.key_facts import KeyEvidence
from tracekit.check.replay.other_caches import forced_syncs
from tracekit.check.replay.run_context import RunContext
from tracekit.check.replay.search import KeyWalker
from tracekit.versions.job import JobRules


def with_forced(judged: KeyJudgement, rules: JobRules, run_context: RunContext) -> KeyJudgement:
    """The same key with `forced` in the judgements of what its syncs wrote."""
    walker = KeyWalker(KeyEvidence(judged.replay.history, rules, run_context), dict)
    known = {
        place_of(write): forced
        for sync, forced in zip(
            judged.replay.syncs, forced_syncs(walker, judged.replay), strict=True
        )
        for write in sync.writes
    }
    judgements = tuple(
        replace(j, forced=known.get((j.resource_version, j.action, j.subject)))
        for j in judged.judgements
    )
    return replace(judged, judgements=judgements)
