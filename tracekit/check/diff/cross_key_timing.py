"""What only all keys together tell: early, late, missing, caches that were too old.

Keys are searched alone and in any order, by any number of processes; each hands over a `KeyTiming`.
`CrossKeyTiming` takes them in, at some hundred bytes a sync, can be sent and merged, and says last
which judgements have to change. It is the only part of a replay that needs all keys at once.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tracekit.check.diff.key_queue import EarlyCandidate, FirstWrite
from tracekit.check.diff.lateness import (
    QUEUED,
    Behind,
    KeyTiming,
    Pace,
    PendingAction,
    Positions,
    Process,
    Services,
    ServicesSummary,
    WatermarkIndex,
    early,
    late,
    shown_in,
)
from tracekit.check.diff.two_clocks import Hanging
from tracekit.check.diff.unrecorded import LATE_ROWS, unknowable
from tracekit.check.replay.run_context import RunContext
from tracekit.check.verdict import Judgement, Verdict


class TimingVerdict(NamedTuple):
    """What becomes of the judgement of a sync's first write."""

    verdict: Verdict
    why: str
    #: What the record does not have, and would have to for this to be certain.
    lacks: str | None = None
    doubt: str = ""  # what it may be instead, by the rules


class TimingResult(Struct):
    """What the process tells of the keys."""

    untimely: Mapping[FirstWrite, TimingVerdict]
    #: What was certainly left undone.
    missing: list[Judgement]
    #: How far the informers had got, and the Jobs that were explained by older caches than that.
    shown: WatermarkIndex
    contradicted: frozenset[tuple[str, str]]
    #: The Jobs whose last sync cannot have been cut off by the record's end, with what it left.
    went_on: Mapping[tuple[str, str], Judgement]

    @property
    def keys(self) -> frozenset[tuple[str, str]]:
        """The Jobs of which a judgement changes, as (namespace, name)."""
        return frozenset(_pair(first.key) for first in self.untimely)

    def upholds(self, judgements: Iterable[Judgement], behind: Iterable[Behind]) -> bool:
        """Whether what a second search found of a Job has nothing against it any more."""
        return not any(judgement.divergent for judgement in judgements) and not any(
            self.shown.contradicts(one) for one in behind
        )

    def without(
        self, cleared: Collection[tuple[str, str]], lacking: Mapping[tuple[str, str], str]
    ) -> TimingResult:
        """The same without what contradicted the first search of some Jobs.

        Of others it is not certain, for what the record lacks.
        """
        untimely = dict(self.untimely)
        for first, found in self.untimely.items():
            key = _pair(first.key)
            if found.verdict is Verdict.EXTRA and key in cleared:
                del untimely[first]
            elif found.verdict is Verdict.EXTRA and key in lacking:
                untimely[first] = found._replace(lacks=lacking[key])
        missing = []
        for judgement in self.missing:
            left_by = self._left_by(judgement)
            if left_by is not None and left_by in lacking:
                missing.append(unknowable(judgement, lacking[left_by]))
            elif left_by not in cleared:
                missing.append(judgement)
        contradicted = self.contradicted - frozenset(cleared)
        return replace(self, untimely=untimely, missing=missing, contradicted=contradicted)

    def _left_by(self, judgement: Judgement) -> tuple[str, str] | None:
        """The Job whose last sync left this, if it is what one left that went on."""
        key = judgement.object.namespace, judgement.object.name
        return key if self.went_on.get(key) is judgement else None

    def of(self, judgement: Judgement) -> Judgement:
        """The judgement, a divergence if it is of the first write of an untimely sync."""
        if not self.untimely or judgement.divergent:
            return judgement
        where = judgement.object
        key = f"{where.namespace}/{where.name}"
        found = self.untimely.get(FirstWrite(key, judgement.action, judgement.resource_version))
        if found is None:
            return judgement
        if found.doubt:
            return replace(judgement, why=f"{judgement.why}; {found.doubt}", ambiguous=True)
        timed = replace(judgement, verdict=found.verdict, why=f"{found.why}; {judgement.why}")
        return timed if found.lacks is None else unknowable(timed, found.lacks)


class TimingSummary(Struct, frozen=True):
    """What some keys have told, as it is sent from one process to another."""

    services: ServicesSummary
    calls_ns: bytes  # 8 bytes each
    serial_ns: bytes
    early_candidates: list[EarlyCandidate]
    pending: list[PendingAction]
    behind: list[Behind]
    hanging: list[Hanging]
    #: stream -> times and revisions, 8 bytes each.
    seen: dict[str, tuple[bytes, bytes]]

    @property
    def size_bytes(self) -> int:
        """About how much it is to send."""
        numbers = sum(len(at_ns) + len(rv) for at_ns, rv in self.seen.values())
        return len(self.calls_ns) + len(self.serial_ns) + numbers + 50 * len(self.services.timed)


@dataclass(slots=True)
class CrossKeyTiming:
    """What the keys have told so far."""

    controller: str = "job"
    _services: Services = field(default_factory=Services)
    _calls_ns: array[int] = field(default_factory=lambda: array("q"))
    _serial_ns: array[int] = field(default_factory=lambda: array("q"))
    _early_candidates: list[EarlyCandidate] = field(default_factory=list)
    _pending: list[PendingAction] = field(default_factory=list)
    _behind: list[Behind] = field(default_factory=list)
    _hanging: list[Hanging] = field(default_factory=list)
    _seen: dict[str, Positions] = field(default_factory=dict)
    _shares: bool = False  # whether another one holds what informers were seen to have reached
    _from_ns: int = 0  # what was before is forgotten

    def add(self, timing: KeyTiming) -> None:
        """Take in what one key tells."""
        self._services.add(timing.services)
        self._calls_ns.extend(timing.calls_ns)
        self._serial_ns.extend(timing.serial_ns)
        self._early_candidates += timing.early_candidates
        self._pending += timing.pending
        self._behind += timing.behind
        self._hanging += timing.hanging
        for seen in timing.seen:
            if seen.stream not in self._seen:
                self._seen[seen.stream] = Positions()
            self._seen[seen.stream].at_ns.append(seen.at_ns)
            self._seen[seen.stream].rv.append(seen.rv)

    def summary(self) -> TimingSummary:
        """What it was told, to be sent; how far informers were seen only if it is its own."""
        seen = {} if self._shares else self._seen
        return TimingSummary(
            self._services.summary(),
            self._calls_ns.tobytes(),
            self._serial_ns.tobytes(),
            self._early_candidates,
            self._pending,
            self._behind,
            self._hanging,
            {name: (known.at_ns.tobytes(), known.rv.tobytes()) for name, known in seen.items()},
        )

    def merge(self, summary: TimingSummary) -> None:
        """Take in what others know of their keys, in any order."""
        self._services.merge(summary.services)
        self._calls_ns.frombytes(summary.calls_ns)
        self._serial_ns.frombytes(summary.serial_ns)
        self._early_candidates += summary.early_candidates
        self._pending += summary.pending
        self._behind += summary.behind
        self._hanging += summary.hanging
        for stream, (at_ns, rv) in summary.seen.items():
            known = self._seen.setdefault(stream, Positions())
            known.at_ns.frombytes(at_ns)
            known.rv.frombytes(rv)

    def beside(self, controller: str, past: CrossKeyTiming | None = None) -> CrossKeyTiming:
        """One for another controller of the process: it shares the informers, and no queue.

        `past` is what that controller's queue has served before, of which nothing is to be said.
        """
        made = CrossKeyTiming(controller, _seen=self._seen, _shares=True)
        if past is not None:
            made.merge(replace(past.summary(), seen={}))
            made._from_ns = past._from_ns  # noqa: SLF001 - its own kind
        return made

    def copy(self) -> CrossKeyTiming:
        """Another one that has been told the same."""
        return deepcopy(self)

    def forget(self, before_ns: int) -> None:
        """Let go of what was before that time; nothing is then said of a wait that began in it."""
        self._from_ns = before_ns
        self._services = self._services.since(before_ns)
        self._calls_ns = array("q", (at_ns for at_ns in self._calls_ns if at_ns >= before_ns))
        self._serial_ns = array("q", (at_ns for at_ns in self._serial_ns if at_ns >= before_ns))
        self._seen = {stream: known.since(before_ns) for stream, known in self._seen.items()}

    def __len__(self) -> int:
        return len(self._services)

    @property
    def calls_ns(self) -> list[int]:
        """When the process was seen to make a call, in order."""
        return sorted(self._calls_ns)

    def _process(self, services: Services, run_context: RunContext, pace: Pace) -> Process:
        return Process(
            services,
            array("q", self.calls_ns),
            serial_ns=sorted(self._serial_ns),
            blind=[
                (0, self._from_ns),
                *((o.from_ns, o.until_ns) for o in run_context.interruptions),
            ],
            whole=run_context.whole,
            quiet=run_context.quiet.get(self.controller, ()),
            pace=pace,
            throttle=run_context.throttle,
        )

    def settled(self, run_context: RunContext, pace: Pace = QUEUED) -> TimingResult:
        """What follows for the judgements, now that all keys have told."""
        process = self._process(self._services, run_context, pace)
        shown, older = WatermarkIndex(process, self._seen), {}
        for behind in self._behind:
            why = shown.contradicts(behind)
            if why is not None:
                width_ns = run_context.width_ns(behind.at_ns)
                earlier = behind._replace(
                    began_ns=behind.began_ns - width_ns, at_ns=behind.at_ns - width_ns
                )
                lacks = None if shown.contradicts(earlier) is not None else LATE_ROWS
                older[behind.first] = TimingVerdict(Verdict.EXTRA, why, lacks)
        if older:
            proving = self._services.without({first.key for first in older})
            process = self._process(proving, run_context, pace)
        hanging = {each.first: each.clocks for each in self._hanging}
        untimely = {
            first: TimingVerdict(Verdict.LATE, why, lacks)
            for first, why, lacks in late(process, hanging)
        }
        for candidate in self._early_candidates:
            why = early(process, candidate)
            if why is not None and not (candidate.doubt and candidate.first in untimely):
                untimely[candidate.first] = TimingVerdict(Verdict.EARLY, why, doubt=candidate.doubt)
        untimely |= older
        contradicted = {_pair(first.key) for first in older}
        missing, went_on = [], {}
        left_by: dict[tuple[str, str], int] = {}
        for pending in sorted(self._pending, key=_object):  # keys may have come in any order
            end_ns = run_context.seen_until_ns(
                shown_in(pending.judgement.controller, pending.judgement.action)
            )
            until_ns = end_ns if pending.until_ns is None else min(end_ns, pending.until_ns)
            proof = process.proof(
                pending.certain_ns,
                until_ns,
                timed=pending.timed,
                serial=pending.serial,
                idle=pending.idle,
            )
            # What one process has left undone, those before it left as well: it is told once.
            if (
                proof is not None
                and left_by.setdefault(_object(pending), pending.back) == pending.back
            ):
                proven = replace(pending.judgement, why=f"{pending.judgement.why}; {proof}")
                width_ns = run_context.width_ns(pending.certain_ns)
                lacks = _lacks(process, pending, until_ns, width_ns)
                missing.append(proven if lacks is None else unknowable(proven, lacks))
                if pending.rest:
                    where = pending.judgement.object
                    went_on[where.namespace, where.name] = missing[-1]
        contradicted |= went_on.keys()
        return TimingResult(untimely, missing, shown, frozenset(contradicted), went_on)


def _lacks(process: Process, pending: PendingAction, until_ns: int, width_ns: int) -> str | None:
    """What the record lacks to tell that something was left undone.

    As one clock may have it, or, where streams were late, as closely as times are known then.
    """

    def is_proved(later_ns: int) -> bool:
        proof = process.proof(
            pending.certain_ns + later_ns,
            until_ns,
            timed=pending.timed,
            serial=pending.serial,
            idle=pending.idle,
        )
        return proof is not None

    if width_ns and not is_proved(width_ns):
        return LATE_ROWS
    clocks = pending.clocks
    if clocks is None or clocks.ahead_ns > 0 or is_proved(-clocks.ahead_ns):
        return None
    return clocks.why


def _pair(key: str) -> tuple[str, str]:
    namespace, _, name = key.partition("/")
    return namespace, name


def _object(pending: PendingAction) -> tuple[str, str]:
    where = pending.judgement.object
    return where.namespace, where.name
