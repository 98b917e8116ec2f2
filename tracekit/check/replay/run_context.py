"""What a trace as a whole says about the time in which its Jobs lived."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from tracekit.base.coverage import Coverage
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.spans import Spans
from tracekit.check.replay.commit_times import WIDTH_NS
from tracekit.check.replay.instants import JudgedNs, RecordedNs
from tracekit.check.replay.recorder_clock import RecorderClock
from tracekit.versions.throttle import DEFAULT_THROTTLE, Throttle

#: The longest that an informer of the controller is taken to be behind the API server.
INFORMER_LAG_NS = 3 * NS_PER_S
_until = attrgetter("until_ns")


class Outage(NamedTuple):
    """A time in which the record or the controller was interrupted."""

    from_ns: int
    until_ns: int
    why: str
    stream: str = ""  # of a gap: what was not seen
    #: Of a restart: the lease that names the next process; what that writes is newer.
    until_rv: int = 0


class Unposted(NamedTuple):
    """A time of which Events may be missing: they were handed over, and never posted in sight."""

    from_ns: int
    until_ns: int
    why: str
    #: Whether the last Events that were posted came late: those handed over later had to wait.
    behind: bool = False


class Refusing(NamedTuple):
    """An admission webhook or policy that was seen to refuse writes in a namespace."""

    why: str  # the words of the first Event
    last_ns: int  # when the last Event of that kind came


class Shown(Protocol):
    """How far the informers of the process had certainly got, as its other syncs show."""

    def rv(self, stream: str, at_ns: int, began_ns: int = 0) -> int:
        """The revision that a sync had seen at least whose first call is at `at_ns`.

        `began_ns`: it had not begun before, as what it saw itself shows.
        """
        ...


class Misfit(Struct, frozen=True):
    """That a record as a whole contradicts the rules that it is judged by.

    Searching each of its Jobs to the bound would say one thing a thousand times.
    """

    #: Sentences for the user: what contradicts what, and what explains it.
    why: str
    #: By namespace and name, the Jobs that are searched all the same.
    searched: frozenset[tuple[str, str]] = frozenset()


class Sample(Struct, frozen=True):
    """What the Jobs that are searched first tell of the search of all others."""

    misfit: Misfit | None = None
    #: These Jobs, by namespace and name, where half of them contradict the rules in times of which
    #: the record bears no divergence: what a long search of the others finds is not told either.
    #: Else None.
    unborne: frozenset[tuple[str, str]] | None = None


class RunContext(Struct, frozen=True, dict=True):
    """What the trace as a whole says about the time in which a key lived."""

    end_ns: int  # receive time of the last observation
    restarts: tuple[Outage, ...] = ()  # the controller manager died and another took over
    gaps: tuple[Outage, ...] = ()
    #: namespace -> the revision at which its deletion was first seen; it takes no new objects.
    namespaces_ending: Mapping[str, int] = field(default_factory=dict)
    #: Streams that the source does not hold -> why; nothing follows from their having no rows.
    not_recorded: Mapping[str, str] = field(default_factory=dict)
    #: namespace -> what Events tell of an admission webhook or policy that refuses writes there.
    refusing: Mapping[str, Refusing] = field(default_factory=dict)
    #: Times of which Events may be missing: their process died, or the record ended, before they
    #: were posted.
    unposted: tuple[Unposted, ...] = ()
    #: Why the times of rows are not those at which things happened; empty where they are.
    times_unknown: str = ""
    #: Why objects that were there before the record began are not known; empty where it lists them.
    unlisted: str = ""
    #: Whether all keys of the controllers were recorded; else silence proves nothing.
    whole: bool = True
    #: Where not: times in which a controller made no call, as the whole record had told.
    quiet: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    #: The token bucket of each controller's client.
    throttle: Throttle = DEFAULT_THROTTLE
    #: The newest revision of each stream.
    seen_rv: Mapping[str, int] = field(default_factory=dict)
    #: By resourceVersion, when that was written which its stream showed late.
    written_ns: Mapping[int, int] = field(default_factory=dict)
    #: Times in which streams were late, in order and apart.
    late: tuple[tuple[int, int], ...] = ()
    #: The recorder's clock: all times here are on the one that is judged on.
    clock: RecorderClock = RecorderClock()
    #: By node, how far the clock of its kubelet was ahead of that one, where they differ.
    kubelets_ahead_ns: Mapping[str, int] = field(default_factory=dict)
    #: How far API servers' clocks were behind it; 0 where they are the same.
    servers_behind_ns: int = 0
    #: Known once all keys were searched: a key that contradicts it is searched again.
    shown: Shown | None = None
    #: By namespace and name, those whose last sync had the time to go on before the record ended.
    went_on: frozenset[tuple[str, str]] = frozenset()
    #: Where and when each stream was seen: absence proves nothing elsewhere.
    coverage: Coverage = Coverage()
    #: Nothing where the record as a whole fits the rules, or nobody asked.
    sample: Sample = Sample()

    def watching(self, *streams: str) -> RunContext:
        """The same for a controller that watches these streams: no other's gap concerns it."""
        return replace(self, gaps=tuple(gap for gap in self.gaps if gap.stream in streams))

    def not_searched(self, namespace: str, name: str) -> str | None:
        """Why a Job is not searched beyond the likeliest caches; None: it is."""
        misfit = self.sample.misfit
        return None if misfit is None or (namespace, name) in misfit.searched else misfit.why

    def few_reported(self, namespace: str, name: str) -> bool:
        """Whether a Job's divergences would not be reported, as those of most Jobs are not."""
        unborne = self.sample.unborne
        return unborne is not None and (namespace, name) not in unborne

    @property
    def clocks_differ(self) -> bool:
        """Whether any other clock differs from the one that is judged on."""
        return bool(self.kubelets_ahead_ns or self.servers_behind_ns)

    @property
    def recorded_end_ns(self) -> RecordedNs:
        """The end by the recorder's clock."""
        return self.clock.recorded_ns(JudgedNs(self.end_ns))

    @property
    def recorded_restarts(self) -> tuple[Outage, ...]:
        """The restarts by the recorder's clock."""
        return tuple(
            outage._replace(
                from_ns=self.clock.recorded_ns(JudgedNs(outage.from_ns)),
                until_ns=self.clock.recorded_ns(JudgedNs(outage.until_ns)),
            )
            for outage in self.restarts
        )

    @property
    def events_recorded(self) -> bool:
        """Whether Events were recorded: where not, nothing follows from their absence."""
        return "events" not in self.not_recorded

    @cached_property
    def interruptions(self) -> tuple[Outage, ...]:
        """Restarts and gaps alike: a sync may have been cut off in them."""
        return (*self.restarts, *self.gaps)

    @cached_property
    def first_interrupted_ns(self) -> int | None:
        """When the first interruption began; None if there is none."""
        return min((outage.from_ns for outage in self.interruptions), default=None)

    @cached_property
    def last_interrupted_ns(self) -> int | None:
        """When the last of them ended; None if there is none."""
        return max((outage.until_ns for outage in self.interruptions), default=None)

    def interruptions_near(self, from_ns: int, until_ns: int) -> Iterator[Outage]:
        """In their order, the interruptions that touch a time, both its bounds included."""
        yield from _touching(self.restarts, self._restart_spans, from_ns, until_ns)
        yield from self.gaps_touching(from_ns, until_ns)

    @cached_property
    def _restart_spans(self) -> Spans:
        return Spans((outage.from_ns, outage.until_ns) for outage in self.restarts)

    @cached_property
    def gap_ends_ns(self) -> tuple[int, ...]:
        """When the gaps ended, in order."""
        return tuple(sorted(gap.until_ns for gap in self.gaps))

    @cached_property
    def _gap_spans(self) -> Spans:
        return Spans((gap.from_ns, gap.until_ns) for gap in self.gaps)

    def gaps_touching(self, from_ns: int, until_ns: int) -> Iterator[Outage]:
        """In their order, the gaps that touch a time, both its bounds included."""
        return _touching(self.gaps, self._gap_spans, from_ns, until_ns)

    @cached_property
    def restarts_by_end(self) -> tuple[Outage, ...]:
        """The restarts in the order in which they ended."""
        return tuple(sorted(self.restarts, key=_until))

    def seen_until_ns(self, stream: str) -> int:
        """Until when a stream was seen: one that is late has not shown what was written since."""
        return min(self.end_ns, self.written_ns.get(self.seen_rv.get(stream, 0), self.end_ns))

    def width_ns(self, at_ns: int) -> int:
        """To within what the time of a write is known: 0 where no stream was late."""
        if not self.late:
            return 0
        position = bisect_right(self.late, (at_ns, 1 << 62))
        return WIDTH_NS if position and at_ns <= self.late[position - 1][1] else 0

    @property
    def late_or_set(self) -> str:
        """Why times are not known to seconds anywhere: all streams late, or a clock that was set.

        Empty where the record tells which.
        """
        if not self.late or not self.clock.may_be_late:
            return ""
        return (
            "streams came late, and nothing tells whether the recorder's clock was set ahead, too, "
            "or all of them were"
        )

    def before_ns(self, at_ns: int) -> int:
        """What had come by then was in the caches of a sync that wrote at `at_ns`."""
        return at_ns - INFORMER_LAG_NS - self.width_ns(at_ns)

    def gap_near(self, at_ns: int, before_ns: int, stream: str | None = None) -> Outage | None:
        """A gap, of any stream or of that one, that a time lies in or at most so long before."""
        touching = self.gaps_touching(at_ns, at_ns + before_ns)
        return next((gap for gap in touching if stream in (None, gap.stream)), None)

    def interrupted(self, from_ns: int, until_ns: int) -> bool:
        """Whether the record or the controller was interrupted between two times."""
        return bool(self.restarts or self.gaps) and any(
            o.until_ns > from_ns and o.from_ns < until_ns
            for o in self.interruptions_near(from_ns, until_ns)
        )


def _touching(
    outages: tuple[Outage, ...], spans: Spans, from_ns: int, until_ns: int
) -> Iterator[Outage]:
    for place in spans.near(from_ns, until_ns):
        outage = outages[place]
        if outage.from_ns <= until_ns and from_ns <= outage.until_ns:
            yield outage
