"""TK9xx: the record itself: what it does not hold, and what is therefore not known."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from statistics import median

from tracekit.answers.harm import NO_HARM
from tracekit.answers.model import Case, Rule, Severity, Target
from tracekit.answers.parts import RuleGroup
from tracekit.answers.trace_model import Facts
from tracekit.answers.words import clock, counted, named, shortened
from tracekit.base.durations import span
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.verdict import Reason

#: Times of receipt and of creation may differ by so much: whole seconds, and a recorder's delay.
AHEAD_NS = NS_PER_S
BEHIND_NS = 30 * NS_PER_S
_SAMPLES = 5
_NEEDED = {
    "jobs": "nothing can be judged",
    "pods": "what Jobs did with their pods is not judged",
    "events": "refused creations and the controllers' own words are not known",
    "cronjobs": "ticks and what a CronJob did are not known",
    "leases": "times without a leader are not known",
}

GAPS = Rule(
    "TK901", "gaps in the record", Severity.WARNING,
    "The trace has GAP rows: the recorder could not see a stream, and says so.",
    "None known.",
    "What happened in them is unknowable; record next to the API server, with its own bandwidth.",
    rank=45,
)  # fmt: skip
DAMAGED = Rule(
    "TK902", "a part of the trace is lost", Severity.ERROR,
    "A file of the trace is missing or cannot be read. Nothing is judged then.",
    "None known.",
    "Restore the file from a copy of the trace.", rank=1,
)  # fmt: skip
STREAMS = Rule(
    "TK903", "streams that were not recorded", Severity.WARNING,
    "The trace has no row, not even an empty list, of one of the streams jobs, pods, events, "
    "cronjobs, leases.",
    "None known.",
    "A recorder needs the rights that `tracekit manifests` prints; a list, "
    "`kubectl get jobs,cronjobs,pods,events,leases -A -o yaml`.", rank=46,
)  # fmt: skip
SKEW = Rule(
    "TK904", "clocks that differ", Severity.WARNING,
    "Of the Jobs and pods whose creation was seen, the median of receipt - creationTimestamp is "
    "below -1 s or above 30 s (at least five of them).",
    "An API server that serves its watches tens of seconds late.",
    "Set the recorder's clock by NTP; times of receipt and of the API are compared in some rules.",
    rank=47,
)  # fmt: skip
UNKNOWABLE = Rule(
    "TK905", "actions that the record cannot tell", Severity.INFO,
    "The replay's verdict on them is `unknowable`; they are counted by reason.",
    "None known.",
    "Begin a record before the Jobs, and let it go on for a while after them.", rank=65,
)  # fmt: skip
NOT_JUDGED = Rule(
    "TK906", "not judged", Severity.WARNING,
    "The replay gave no verdicts about the Jobs or CronJobs that the record has; the reason is "
    "told. Findings TK1xx are not known then.",
    "None known.",
    "Do what the reason says.", rank=2,
)  # fmt: skip
MISFIT = Rule(
    "TK907", "the record as a whole contradicts the rules", Severity.ERROR,
    "Of the Jobs that the replay searches first, chosen by digests of their names, half or more "
    "contradict the rules. The others are then searched for the likeliest caches only, and what "
    "these do not explain is `unknowable`: see docs/replay.md. In a record of fewer than 32 Jobs, "
    "and of CronJobs and TTLs, all are searched, and half of them or more contradict the rules.",
    "A what-if replay by the rules of another version.",
    "Do what it says: other rules, another recorder, or, where nothing explains it, ask who runs "
    "the controllers.", rank=3,
)  # fmt: skip
RULES = (GAPS, DAMAGED, STREAMS, SKEW, UNKNOWABLE, NOT_JUDGED, MISFIT)
_TRACE = Target("Trace", "", "the record")


class Record(RuleGroup):
    """The rules of this family."""

    def __init__(self) -> None:
        #: How long after their creation objects were received first, ns.
        self._behind = array("q")

    def of_part(self, facts: Facts) -> Iterator[Case]:
        """No case: the clocks of the objects are noted."""
        self._behind.extend(_behind(facts))
        return iter(())

    def of_whole(self, whole: Facts) -> Iterator[Case]:
        """What is wrong with the record."""
        return _of_record(whole, self._behind)


def _of_record(facts: Facts, behind: Sequence[int]) -> Iterator[Case]:
    for problem in dict.fromkeys(facts.problems):
        claim = "a part of it is lost, and nothing is judged"
        yield Case(DAMAGED, _TRACE, claim, facts.first_ns, facts.end_ns, problem)
    if facts.shown:
        return  # TK908 says what such a record is
    judged = facts.streams.get("jobs") or facts.streams.get("cronjobs")
    if facts.not_judged is not None and not facts.problems and judged:
        yield Case(
            NOT_JUDGED, _TRACE, "has no verdicts", facts.first_ns, facts.end_ns, facts.not_judged
        )
    yield from _gaps(facts)
    missing = [name for name in _NEEDED if not facts.streams.get(name)]
    if missing:
        spans = facts.coverage.spans
        # Who made one list chose what to list; a recorder was to see it all.
        watched = not spans or not all(span.is_look for span in spans)
        text = "; ".join(f"{name}: {_NEEDED[name]}" for name in missing)
        yield Case(
            STREAMS,
            _TRACE,
            f"has no {named(missing, 5)}",
            facts.first_ns,
            facts.end_ns,
            text,
            evidence={"streams": missing},
            severity=None if watched and {"jobs", "pods"} & {*missing} else Severity.INFO,
            harm=NO_HARM,
        )
    yield from _skew(facts, behind)
    yield from _misfit(facts)
    yield from _unknowable(facts)


def _gaps(facts: Facts) -> Iterator[Case]:
    if not facts.gaps:
        return
    total = sum((g.until_ns or facts.end_ns) - g.from_ns for g in facts.gaps)
    first = facts.gaps[0]
    streams = list(dict.fromkeys(g.stream for g in facts.gaps))
    yield Case(
        GAPS,
        _TRACE,
        f"could not see {named(streams, 5)} for a time",
        min(g.from_ns for g in facts.gaps),
        max(g.until_ns or facts.end_ns for g in facts.gaps),
        f"{counted(len(facts.gaps), 'gap')}, {span(total)} in all; the first at "
        f"{clock(first.from_ns)}: {first.reason}",
        evidence={"gaps": len(facts.gaps), "seconds": round(total / NS_PER_S, 3)},
    )


#: Differences of more than a century are of times that no clock had.
_OF_A_CLOCK = range(-100 * 365 * 86_400 * NS_PER_S, 100 * 365 * 86_400 * NS_PER_S)


def _behind(facts: Facts) -> Iterator[int]:
    for life in (life for job in facts.jobs for life in (job, *job.pods)):
        row = life.first.row
        if life.seen_from_birth and row["created_ns"] and row["recv_ns"]:
            behind_ns = life.first.at_ns - row["created_ns"]
            if behind_ns in _OF_A_CLOCK:
                yield behind_ns


def _skew(facts: Facts, behind: Sequence[int]) -> Iterator[Case]:
    if len(behind) < _SAMPLES:
        return
    middle = median(behind)
    if -AHEAD_NS <= middle <= BEHIND_NS:
        return
    way = "behind" if middle < 0 else "ahead of"
    yield Case(
        SKEW,
        _TRACE,
        f"its clock is {span(abs(middle))} {way} the API server's",
        facts.first_ns,
        facts.end_ns,
        f"median of {counted(len(behind), 'object')}: received "
        f"{middle / NS_PER_S:+.1f} s after its creationTimestamp",
        evidence={"median_s": round(middle / NS_PER_S, 3), "objects": len(behind)},
    )


def _misfit(facts: Facts) -> Iterator[Case]:
    hidden = [j for j in facts.judgements.unknowable if j.reason is Reason.MISFIT]
    why = facts.judgements.misfit or (hidden[0].why if hidden else "")
    if why:
        times = [judgement.time_ns for judgement in (*hidden, *facts.judgements.divergent)]
        rest = f": {counted(len(hidden), 'action')} not judged" if hidden else ""
        yield Case(
            MISFIT,
            _TRACE,
            f"contradicts the rules as a whole{rest}",
            min(times),
            max(times),
            why,
            evidence={"actions": len(hidden)},
        )


def _unknowable(facts: Facts) -> Iterator[Case]:
    found = [j for j in facts.judgements.unknowable if j.reason is not Reason.MISFIT]
    if not found:
        return
    times = [judgement.time_ns for judgement in found]
    whys: defaultdict[Reason | None, Counter[str]] = defaultdict(Counter)
    for judgement in found:
        whys[judgement.reason][judgement.why] += 1
    reasons = sorted(
        (-said.total(), reason.value if reason is not None else "", _commonest(said))
        for reason, said in whys.items()
    )
    yield Case(
        UNKNOWABLE,
        _TRACE,
        f"cannot tell about {counted(len(times), 'action')}",
        min(times),
        max(times),
        "; ".join(f"{-count}: {shortened(why)}" for count, _, why in reasons[:3]),
        evidence={
            "actions": len(times),
            "reasons": {reason: -count for count, reason, _ in reasons},
        },
    )


def _commonest(said: Counter[str]) -> str:
    return min(said, key=lambda why: (-said[why], why))
