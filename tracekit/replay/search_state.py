"""Where a walk over the syncs of one key stands, how it got there, and how it turns back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from tracekit.cache.pods import PodCache
from tracekit.controllers.job.context import Note
from tracekit.controllers.job.memory import JobMemory
from tracekit.kube.views import JobView
from tracekit.replay.history import History, Revision, Write
from tracekit.replay.recorded_api import PredictedEvent, Problem

#: How many earlier syncs may be asked for another cut before a divergence stands.
MAX_BACKTRACKS = 64


@dataclass(frozen=True, slots=True)
class State:
    """Where the walk stands after some syncs."""

    index: int  # the next write to explain
    memory: JobMemory
    cache: PodCache  # the pod cache at `pod_floor`; never moved, only copied
    pod_floor: int  # no later sync can have seen fewer pod revisions
    job_floor: int  # nor an older revision of the Job
    done: frozenset[int] = frozenset()
    last_write_ns: int = 0
    restarts_seen: int = 0
    listings_seen: int = 0
    own_status: Revision[JobView] | None = None  # the revision that its last status write made
    own_pods: int = 0  # so many pod revisions reach up to its own last creation or patch
    #: False after the record could not see this key, until a sync is explained again: the memory of
    #: the controller, and what it was in the midst of, are not known.
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Explanation:
    """One sync under one cut, and the writes that it explains."""

    writes: tuple[Write, ...]
    job: Revision[JobView] | None  # the revision in the Job's cache
    pod_cut: int  # how many pod revisions the pod cache held
    pods_unseen: int  # how many more there were
    lag_ns: int  # age of the oldest revision that was not seen
    now_ns: int
    due_ns: int  # when the last thing that it waited for had come: an input, or a timer
    timed: bool  # whether that was a timer
    events: tuple[PredictedEvent, ...]
    problems: tuple[Problem, ...]
    refused: int
    cut_off: bool
    notes: tuple[Note, ...]  # by which rules the sync decided
    woke_itself: bool  # it armed a timer or ended with an error: the key is woken again
    state: State  # after the sync
    handlers_behind: bool = False  # the cache held a pod revision that its memory did not know


class Apart(Enum):
    """Why a write needs no sync of the key."""

    ORPHAN_WORKER = "orphan worker"
    FOREIGN = "foreign"
    UNKNOWABLE = "unknowable"


class WriteApart(NamedTuple):
    """A write that no sync of the key made."""

    reason: Apart
    write: Write
    why: str = ""


@dataclass(slots=True)
class KeyReplay:
    """What the walk found out about one key."""

    history: History
    final: State
    syncs: list[Explanation]
    apart: list[WriteApart]

    def of(self, reason: Apart) -> Iterator[WriteApart]:
        """The writes that stand apart for this reason, in the order of the store."""
        return (entry for entry in self.apart if entry.reason is reason)


@dataclass(slots=True)
class Trail:
    """The way so far, and the syncs that can still be asked for another cut."""

    entries: list[Explanation | WriteApart] = field(default_factory=list)
    stack: list[tuple[State, Iterator[Explanation], int]] = field(default_factory=list)
    backtracks: int = 0
    #: The farthest dead end.
    frontier: tuple[State, list[Explanation | WriteApart]] | None = None

    def step(self, state: State, options: Iterator[Explanation], found: Explanation) -> None:
        """Take one explanation; its other `options` stay open."""
        self.stack.append((state, options, len(self.entries)))
        if len(self.stack) > MAX_BACKTRACKS:
            del self.stack[0]
        self.entries.append(found)

    def turn_back(self, state: State) -> Explanation | None:
        """From a dead end to the next explanation of an earlier sync, if there is one."""
        if self.frontier is None or self.frontier[0].index < state.index:
            self.frontier = (state, list(self.entries))
        while self.stack and self.backtracks < MAX_BACKTRACKS:
            before, options, length = self.stack.pop()
            self.backtracks += 1
            found = next(options, None)
            if found is not None:
                del self.entries[length:]
                self.step(before, options, found)
                return found
        return None

    def give_up(self, state: State) -> State:
        """Return to the farthest dead end; what lies before it stands."""
        if self.frontier is not None:
            state, self.entries = self.frontier
        self.frontier = None
        self.stack.clear()
        self.backtracks = 0
        return state

    def result(self, history: History, final: State) -> KeyReplay:
        """The trail, sorted by what its entries are."""
        return KeyReplay(
            history,
            final,
            [entry for entry in self.entries if isinstance(entry, Explanation)],
            [entry for entry in self.entries if isinstance(entry, WriteApart)],
        )
