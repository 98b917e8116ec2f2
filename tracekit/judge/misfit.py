"""Whether a record contradicts the rules as a whole, which a few of its Jobs tell.

Before all Jobs are searched a sample is, chosen by digests of their names, so that each run and
each number of processes chooses alike. Where half of it contradicts the rules, all others are
searched only as far as the likeliest caches go: to search each to its bound would take a hundred
times as long, and say one thing as often. What is the matter is then asked of the sample: other
versions and gates, clocks, streams. Nothing is judged by other rules than those that were asked
for; only where streams were late, which their rows prove, no divergence is told at all. Where such
rows take the divergences of half the sample, the others are searched for less long.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Final, NamedTuple

from msgspec.structs import replace

from tracekit.base.errors import UnsupportedVersionError
from tracekit.check.diff.cross_key_timing import CrossKeyTiming
from tracekit.check.diff.judge import KeyJudgement
from tracekit.check.diff.registry import Others, Scope
from tracekit.check.diff.trace import judge_groups
from tracekit.check.diff.unrecorded import rests_on_times
from tracekit.check.replay.feed import RowGroup, histories
from tracekit.check.replay.run_context import Misfit, RunContext, Sample
from tracekit.check.verdict import Judgement, Reason, Verdict
from tracekit.trace.reading.selection import Keys
from tracekit.versions.cronjob import CronJobEra
from tracekit.versions.era import NEWEST, OLDEST, Era
from tracekit.versions.gates import GATES, Gate
from tracekit.versions.job import JobRules
from tracekit.versions.version import PATCH_MAX, KubeVersion

Key = tuple[str, str]
#: So many Jobs are asked first, of a record with at least twice as many. These three are choices,
#: which `--search-all` goes without: with fewer Jobs, or fewer that contradict, a record that fits
#: but for some of its Jobs may count as one that does not.
SAMPLE = 16
#: So many of them contradict the rules where the record does.
CONTRADICTING = 8
#: So many of these are asked whether other rules explain them; with fewer, rules that fit by chance
#: are named.
ASKED = 4


class Contradicts(NamedTuple):
    """A Job or CronJob that contradicts the rules."""

    key: Key
    divergences: tuple[Judgement, ...]


class Sources(NamedTuple):
    """What a record is asked through."""

    #: The rows of some Jobs, on the clock that they are judged on.
    groups: Callable[[Keys], Iterable[RowGroup]]
    #: The same of some objects of another controller, with all that these need.
    families: Callable[[str, Collection[Key]], Iterable[RowGroup]]
    #: A judgement, as far as the record can tell.
    as_recorded: Callable[[Judgement], Judgement]
    #: The version that the trace says, and the one that its objects fit best, with what tells so.
    versions: Callable[[], Sequence[tuple[KubeVersion, str]]]


def sample_of(
    jobs: Collection[Key],
    era: Era,
    context: RunContext,
    sources: Sources,
    sampled: Callable[[KeyJudgement], None] = lambda _: None,
) -> Sample:
    """What is the matter with a record as a whole; nothing where its sample fits the rules.

    `context` is the Job controller's. `sampled` gets what was judged: where there is no misfit
    each of these Jobs is judged no other way with all the rest.
    """
    if len(jobs) < 2 * SAMPLE:
        return Sample()
    sample = tuple(sorted(sorted(jobs, key=_digest)[:SAMPLE]))
    searched: list[Key] = []
    found: list[Contradicts] = []
    unborne = 0
    for judged in judge_groups(sources.groups(Keys(sample)), JobRules.of(era), context, sample):
        sampled(judged)
        history = judged.replay.history
        searched.append((history.namespace, history.name))
        reported = map(sources.as_recorded, judged.judgements)
        divergences = tuple(judgement for judgement in reported if judgement.divergent)
        if divergences:
            found.append(Contradicts(searched[-1], divergences))
        elif any(judgement.divergent for judgement in judged.judgements):
            unborne += 1
        if len(found) >= CONTRADICTING:
            question = _Question(era, context, sources)
            return Sample(_described(found, searched, len(jobs), question))
        if unborne >= CONTRADICTING:
            return Sample(unborne=frozenset(searched))
    return Sample()


class Systematic:
    """How much of what was judged contradicts the rules, by controller."""

    def __init__(self) -> None:
        self._judged: dict[str, set[Key]] = defaultdict(set)
        self._divergences: dict[str, list[Judgement]] = defaultdict(list)

    def take(self, judgement: Judgement) -> None:
        """Count a judgement."""
        self.judged(judgement.controller, judgement.object.namespace, judgement.object.name)
        if judgement.divergent:
            self._divergences[judgement.controller].append(judgement)

    def judged(self, controller: str, namespace: str, name: str) -> None:
        """Count an object of which a controller's action was judged."""
        self._judged[controller].add((namespace, name))

    def again(self, jobs: Collection[Key]) -> None:
        """Judgements of these Jobs come once more."""
        self._divergences["job"] = [j for j in self._divergences["job"] if _key(j) not in jobs]

    def whys(
        self, era: Era, context: RunContext, sources: Sources, *, sampled: bool
    ) -> Iterator[str]:
        """What is the matter with each controller, in sentences; none where the rules fit.

        `sampled`: of the Jobs a sample has told it.
        """
        for controller in _COUNTED:
            by_key: dict[Key, list[Judgement]] = defaultdict(list)
            for judgement in self._divergences[controller]:
                by_key[_key(judgement)].append(judgement)
            judged = len(self._judged[controller])
            if len(by_key) < max(ASKED, judged / 2) or (sampled and controller == "job"):
                continue
            found = [Contradicts(key, tuple(by_key[key])) for key in sorted(by_key)]
            question = _Question(era, context, sources, controller)
            yield (
                f"{len(found)} of the {judged} {_COUNTED[controller]} contradict the rules of "
                f"{era.version}{_alike(found)}. {_explained(found, question)}"
            )


#: What is counted of each controller.
_COUNTED: Final = {"job": "Jobs", "cronjob": "CronJobs", "ttl": "Jobs with a TTL"}


def _key(judgement: Judgement) -> Key:
    return judgement.object.namespace, judgement.object.name


def _digest(key: Key) -> bytes:
    return hashlib.blake2b("/".join(key).encode(), digest_size=8).digest()


class _Question(NamedTuple):
    """By which rules a record was judged that it does not fit."""

    era: Era
    context: RunContext
    sources: Sources
    controller: str = "job"

    def rules(self, era: Era) -> object:
        """What of an era decides: eras that do not differ in it need not be asked."""
        if self.controller == "job":
            return JobRules.of(era)
        return replace(CronJobEra.of(era), version=self.era.version)


def _described(
    found: Sequence[Contradicts], searched: Sequence[Key], jobs: int, question: _Question
) -> Misfit:
    """The misfit in sentences, with the sample."""
    version = question.era.version
    start = (
        f"{len(found)} of the {len(searched)} Jobs that were searched first contradict the rules "
        f"of {version}{_alike(found)}"
    )
    rest = (
        f"The other {jobs - len(searched):,} of {jobs:,} Jobs were searched for the likeliest "
        "caches only: what these do not explain is unknowable; --search-all searches all."
    )
    late = sum(bool(question.context.width_ns(c.divergences[0].time_ns)) for c in found)
    if late == len(found):
        why = "all of it in times in which streams came late, as newer rows of others prove"
        rest = (
            f"None of the {jobs:,} Jobs is judged by what the likeliest caches do not explain; "
            "--search-all judges all the same."
        )
        return Misfit(f"{start}, {why}. {rest}")
    return Misfit(f"{start}. {_explained(found, question)} {rest}", frozenset(searched))


def _alike(found: Sequence[Contradicts]) -> str:
    """In what most of them do."""
    manners = Counter(chain.from_iterable({_manner(j) for j in c.divergences} for c in found))
    manner, times = max(manners.items(), key=lambda item: (item[1], item[0]))
    return f", {times} of them in the same way ({manner})" if times > 1 else ""


def _manner(judgement: Judgement) -> str:
    paths = sorted({difference.path for difference in judgement.fields})
    where = f" in {paths[0]}" if paths else ""
    return f"{judgement.verdict.value} {judgement.action}{where}"


def _explained(found: Sequence[Contradicts], question: _Question) -> str:
    """What explains the contradiction, as the sample tells."""
    asked = sorted(found, key=lambda c: (len(c.divergences), c.key))[:ASKED]
    keys = tuple(sorted(c.key for c in asked))
    for era, evidence, option in _others(question):
        if _fits(keys, era, question):
            return f"All {len(keys)} that were asked fit the rules {evidence}: {option}."
    if all(rests_on_times(judgement) for c in found for judgement in c.divergences):
        return (
            "All of it hangs on times: a clock of the controller manager's or of nodes is off by "
            "more than the record proves, or it was given flags that the record does not show."
        )
    return (
        "No other version and no single feature gate explains it: the controllers may not be "
        "upstream's."
    )


def _fits(keys: tuple[Key, ...], era: Era, question: _Question) -> bool:
    """Whether the likeliest caches explain some objects by other rules."""
    explained = set[Key]()
    if question.controller != "job" and len(keys) > 1:
        # All are searched before any is answered: what contradicts one by itself is enough.
        singly = chain.from_iterable(_judged((key,), era, question) for key in keys)
        if any(map(_refutes, singly)):
            return False
    for judgement in _judged(keys, era, question):
        if _refutes(judgement):
            return False
        if judgement.verdict is not Verdict.UNKNOWABLE:
            explained.add(_key(judgement))
    return explained.issuperset(keys)


def _refutes(judgement: Judgement) -> bool:
    return judgement.divergent or judgement.reason is Reason.MISFIT


def _judged(keys: tuple[Key, ...], era: Era, question: _Question) -> Iterator[Judgement]:
    """What is said of some objects by other rules, as far as the record bears it."""
    return map(question.sources.as_recorded, _searched(keys, era, question))


def _searched(keys: tuple[Key, ...], era: Era, question: _Question) -> Iterator[Judgement]:
    """What is said of some objects by other rules."""
    context = replace(question.context, sample=Sample(Misfit("not searched")))
    if question.controller == "job":
        groups, context = question.sources.groups(Keys(keys)), context.watching("jobs", "pods")
        for judged in judge_groups(groups, JobRules.of(era), context, keys):
            yield from judged.judgements
        return
    only = keys if question.controller == "cronjob" else ()
    others = Others(Scope(era, context, CrossKeyTiming(), only))
    groups = question.sources.families(question.controller, keys)
    for history in histories(others.passing(groups), None, context.written_ns):
        others.job(history)
    for judgement in others.report():
        if judgement.controller == question.controller and _key(judgement) in keys:
            yield judgement


def _others(question: _Question) -> Iterator[tuple[Era, str, str]]:
    """Other rules, each once, the likeliest first: what they are of, and how to ask for them."""
    seen = [question.rules(question.era)]
    for era, evidence, option in chain(_versions(question), _gates(question.era)):
        rules = question.rules(era)
        if rules not in seen:
            seen.append(rules)
            yield era, evidence, option


def _versions(question: _Question) -> Iterator[tuple[Era, str, str]]:
    """The version that the trace says, the one that its objects show, then those next to ours."""
    named = [(v, f"of {v}, {evidence}") for v, evidence in question.sources.versions()]
    minors = [
        KubeVersion(NEWEST.major, minor, PATCH_MAX, text=f"v{NEWEST.major}.{minor}")
        for minor in range(OLDEST.minor, NEWEST.minor + 1)
    ]
    ours = question.era.basis.minor
    near = sorted(minors, key=lambda v: (abs(v.minor - ours), v.minor))
    for version, words in (*named, *((v, f"of {v}") for v in near)):
        with suppress(UnsupportedVersionError):
            yield Era.resolve(version), words, f"judge by them with --kubernetes-version {version}"


def _gates(era: Era) -> Iterator[tuple[Era, str, str]]:
    """The same version, one feature gate the other way."""
    settable = [gate for gate in Gate if GATES[gate].is_settable(era.basis)]
    as_now = {gate.value: era.enabled(gate) for gate in settable}
    for gate in settable:
        on = not era.enabled(gate)
        with suppress(UnsupportedVersionError):
            setting = f"{gate.value}={str(on).lower()}"
            other = Era.resolve(era.basis, {**as_now, gate.value: on})
            words = f"of {era.version} with {gate.value} {'on' if on else 'off'}"
            yield other, words, f"judge by them with --feature-gates {setting}"
