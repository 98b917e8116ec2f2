"""Where the search stands after some syncs of one key, and the way that led there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import msgspec
from msgspec import Struct

from tracekit.base.kube.views import JobView, PodView
from tracekit.check.replay.history import History, Revision, Write
from tracekit.check.replay.recorded_api import Assumptions, PredictedEvent, Problem
from tracekit.check.verdict import Assumption, Reason
from tracekit.ports.cache.pods import PodCache
from tracekit.ports.job.context import Note
from tracekit.ports.job.memory import JobMemory


class Heuristic(NamedTuple):
    """What a dead end tells of the syncs that led to it."""

    until: int  # the write without an explanation
    seen: int | None = None  # up to there no sync sees a newer revision of the Job than this
    retries: int = 0  # so many the queue had counted by then, and not before
    forgot_at: int | None = None  # a sync before this write made the queue forget its count
    own: bool = False  # the write without an explanation is a deletion, and the controller's


class Retries(Struct, frozen=True, gc=False):
    """How many retries of a key its queue counts, as the syncs that are explained tell."""

    least: int = 0  # since what clears the count left a write
    most: int = 0  # since the process began; one more by a sync that left no write

    def after(self, *, failed: bool, cleared: bool) -> Retries:
        """After a sync that failed, or one that cleared the count."""
        if failed:
            return Retries(self.least + 1, self.most + 1)
        return Retries(0, self.most) if cleared else self


class State(msgspec.Struct, frozen=True, gc=False):
    """What the controller may have known of one key after some syncs."""

    index: int  # the next write to explain
    memory: JobMemory
    cache: PodCache  # the pod cache at `pod_floor`; never moved, only copied
    pod_floor: int  # no later sync can have seen fewer pod revisions
    job_floor: int  # nor an older revision of the Job
    handled: int = 0  # so many pod revisions the informer's handlers have told the memory
    done: frozenset[int] = frozenset()
    not_before_ns: int = 0  # no sync begins before: the last one ended, or a new process began
    restarts_seen: int = 0
    listings_seen: int = 0
    own_status: Revision[JobView] | None = None  # the revision that its last status write made
    own_pods: int = 0  # so many pod revisions reach up to its own last creation or patch
    #: Past the last write of the last sync: one worker serves a key, so the next one writes later.
    written: int = 0
    #: False after the record could not see this key, until a sync is explained again: the memory of
    #: the controller, and what it was in the midst of, are not known.
    certain: bool = True
    #: False from such a time until a pod succeeds: failures of before may hold new pods back.
    backoff_known: bool = True
    silent: tuple[SilentSync, ...] = ()  # since the last sync that wrote
    #: Of a Job tracked with finalizers (up to 1.27): no sync asks for them, they tell times only.
    retries: Retries | None = None
    heuristic: Heuristic | None = None

    def in_a_new_process(self, began_ns: int, restarts: int) -> State:
        """The same for a process that began then, with an empty memory; with so many restarts."""
        return msgspec.structs.replace(
            self,
            memory=JobMemory(),
            handled=self.pod_floor,
            restarts_seen=restarts,
            own_pods=0,
            written=0,
            retries=Retries(),
            backoff_known=True,
            not_before_ns=max(self.not_before_ns, began_ns),
        )

    def out_of_sight(self, listed: int, *, backoff_known: bool) -> State:
        """The same after so many blind times: what the memory holds is not known."""
        return msgspec.structs.replace(
            self,
            # What was sent and not seen before is waited for until the list shows it.
            memory=JobMemory(finalizers=self.memory.finalizers),
            handled=self.pod_floor,
            listings_seen=listed,
            certain=False,
            backoff_known=backoff_known,
            retries=None,
        )

    @property
    def identity(self) -> tuple[object, ...]:
        """All by which two states can be told apart."""
        return (
            self.index,
            self.done,
            self.pod_floor,
            self.job_floor,
            self.handled,
            self.own_status.position if self.own_status is not None else -1,
            self.own_pods,
            max(0, self.written - self.index),
            self.not_before_ns,
            self.certain,
            self.backoff_known,
            self.memory.identity,
        )


class Began(msgspec.Struct, frozen=True, gc=False):
    """What a sync began with, beside its caches: enough to run it once more."""

    state: State
    memory: JobMemory  # never changed: runs get copies
    handled: int  # pod revisions of which the memory knew
    now_ns: int
    assume: Assumptions


class SilentSync(NamedTuple):
    """A sync that left no write: refused, in conflict, without effect, or with nothing to do."""

    job: Revision[JobView]
    pod_cut: int
    error: bool
    timer_ns: int | None  # when the timer goes off that it armed
    events: tuple[PredictedEvent, ...]
    refused: int  # creations
    earliest_ns: int  # it cannot have begun before
    retries: int  # of the key that the queue counts after it (up to 1.27)


class Explanation(msgspec.Struct, frozen=True, gc=False):
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
    rest: Problem | None  # what was still to be written when the record or the process ended
    notes: tuple[Note, ...]  # by which rules the sync decided
    error: bool  # the key was retried, rate limited
    wake_after_ns: int | None  # the timer that it armed, from its end
    state: State  # after the sync
    idle: int = 0  # calls before its first write that changed nothing
    handlers_behind: int = 0  # pod revisions in the cache that its memory did not know yet
    silent: tuple[SilentSync, ...] = ()  # syncs without a write that came before it
    assumptions: tuple[Assumption, ...] = ()
    #: The oldest revision that its caches lacked and prompt informers would have shown.
    stale: Revision[JobView] | Revision[PodView] | None = None
    began: Began | None = None  # None where nothing explains the writes

    @property
    def cut_off(self) -> bool:
        """Whether the record or the process ended within the sync."""
        return self.rest is not None


class WithoutSync(Enum):
    """Why a write needs no sync of the key."""

    ORPHAN_WORKER = "orphan worker"
    FOREIGN = "foreign"
    UNKNOWABLE = "unknowable"


class WriteWithoutSync(NamedTuple):
    """A write that no sync of the key made."""

    reason: WithoutSync
    write: Write
    why: str = ""
    unknowable: Reason | None = None


Entry = Explanation | WriteWithoutSync


@dataclass(slots=True)
class KeyReplay:
    """What the search found out about one key."""

    history: History
    final: State
    syncs: list[Explanation]
    without_sync: list[WriteWithoutSync]

    @classmethod
    def along(cls, history: History, final: State, entries: Iterable[Entry]) -> KeyReplay:
        """The way that was found, sorted by what its entries are."""
        syncs: list[Explanation] = []
        without_sync: list[WriteWithoutSync] = []
        for entry in entries:
            if isinstance(entry, Explanation):
                syncs.append(entry)
            else:
                without_sync.append(entry)
        return cls(history, final, syncs, without_sync)

    def of(self, reason: WithoutSync) -> Iterator[WriteWithoutSync]:
        """The writes that have this reason, in the order of the store."""
        return (entry for entry in self.without_sync if entry.reason is reason)
