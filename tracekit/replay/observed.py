"""The `observed` schedule: does some admissible cut explain each write of one key?

Syncs are anchored at the observed writes. For each, the Job's revision and the position in the pod
stream that the controller's caches had reached are searched, newest first; the position never goes
back from one sync to the next. A cut explains a write when the ported controller, with the memory
that the earlier syncs left it, does exactly what was observed: the same creations, deletions and
patches, and the same status, down to the field.

The search is a depth-first walk over the syncs of one key: when a sync finds no cut, the one before
it is asked for an earlier one. What no cut explains is a divergence; the walk then takes the
nearest attempt as what happened and goes on, so that one lie is told once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tracekit.cache.pods import PodCache
from tracekit.controllers.job.context import DONE, Choices, Note, SyncClock, SyncResult
from tracekit.controllers.job.memory import JobMemory
from tracekit.controllers.job.sync import sync_job
from tracekit.eras.job import JobRules
from tracekit.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.kube.views import JobView
from tracekit.replay.handlers import pod_observed
from tracekit.replay.history import History, Revision, Write, WriteKind
from tracekit.replay.observed_api import (
    Mismatch,
    ObservedApi,
    PredictedEvent,
    Problem,
    RecordEnds,
)

#: Clocks of the recorder and of the controller may differ by so much.
CLOCK_SLACK_NS = NS_PER_S
#: How many earlier syncs may be asked for another cut before a divergence stands.
MAX_BACKTRACKS = 64
#: Up to 1.19: syncs of a stale Job that may follow one that wrote a failure, and fail unseen.
UNSEEN_RETRIES_PER_RETRY = 2
#: Before 1.36 a sync may begin so long after a status write without having seen it.
STALE_JOB_NS = NS_PER_S // 2
#: A lease is renewed every few seconds: the controller may have died so long before its last sign.
CUT_OFF_NS = 10 * NS_PER_S
_FUTURE_NS = 1 << 62


class Blind(NamedTuple):
    """A time in which the record or the controller was interrupted."""

    from_ns: int
    until_ns: int
    why: str


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the trace as a whole says about the time in which a key lived."""

    end_ns: int  # receive time of the last observation
    restarts: tuple[Blind, ...] = ()  # the controller manager died and another took over
    gaps: tuple[Blind, ...] = ()
    #: namespace -> the revision at which its deletion was first seen; it takes no new objects.
    namespaces_ending: Mapping[str, int] = field(default_factory=dict)
    #: A write so close to the end of the trace may have a rest that was not recorded.
    end_slack_ns: int = 15 * NS_PER_S


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


@dataclass(slots=True)
class KeyReplay:
    """What the walk found out about one key."""

    history: History
    syncs: list[Explanation] = field(default_factory=list)
    orphan_removals: list[tuple[Write, str]] = field(default_factory=list)
    foreign: list[tuple[Write, str]] = field(default_factory=list)
    unknowable: list[tuple[Write, str]] = field(default_factory=list)
    final: State | None = None


@dataclass(slots=True)
class _Walk:
    """The way so far, and the syncs that can still be asked for another cut."""

    trail: list[tuple[str, object]] = field(default_factory=list)
    stack: list[tuple[State, Iterator[Explanation], int]] = field(default_factory=list)
    backtracks: int = 0
    frontier: tuple[State, list[tuple[str, object]]] | None = None  # the farthest dead end

    def step(self, state: State, options: Iterator[Explanation], found: Explanation) -> None:
        """Take one explanation; its other `options` stay open."""
        self.stack.append((state, options, len(self.trail)))
        if len(self.stack) > MAX_BACKTRACKS:
            del self.stack[0]
        self.trail.append(("sync", found))

    def turn_back(self, state: State) -> Explanation | None:
        """From a dead end to the next explanation of an earlier sync, if there is one."""
        if self.frontier is None or self.frontier[0].index < state.index:
            self.frontier = (state, list(self.trail))
        while self.stack and self.backtracks < MAX_BACKTRACKS:
            before, options, length = self.stack.pop()
            self.backtracks += 1
            found = next(options, None)
            if found is not None:
                del self.trail[length:]
                self.step(before, options, found)
                return found
        return None

    def give_up(self, state: State) -> State:
        """Return to the farthest dead end; what lies before it stands."""
        if self.frontier is not None:
            state, self.trail = self.frontier
        self.frontier = None
        self.stack.clear()
        self.backtracks = 0
        return state

    def result(self, history: History, final: State) -> KeyReplay:
        """The trail, sorted by what its entries are."""
        result = KeyReplay(history, final=final)
        lists: dict[str, list[Any]] = {
            "sync": result.syncs,
            "orphan": result.orphan_removals,
            "foreign": result.foreign,
            "unknowable": result.unknowable,
        }
        for kind, entry in self.trail:
            lists[kind].append(entry)
        return result


class KeyWalker:
    """Walks through the writes of one key."""

    def __init__(
        self,
        history: History,
        rules: JobRules,
        surroundings: Surroundings,
        find_foreign: Callable[[], Mapping[int, str]],
    ) -> None:
        """`find_foreign` names the writes that somebody else made, by index, with the evidence.

        It is asked only when something cannot be explained: evidence is dear to read.
        """
        self.history = history
        self.rules = rules
        self.surroundings = surroundings
        self.foreign: Mapping[int, str] = {}
        self._find_foreign = find_foreign
        self._deleted_by_event = {
            event.message.removeprefix("Deleted pod: ")
            for event in history.events
            if event.reason == "SuccessfulDelete"
        }
        self.failed_creates = any(event.reason == "FailedCreate" for event in history.events)
        self._blind_until_ns = [
            *(revision.recv_ns for revision in history.listings()),
            *(gap.until_ns for gap in surroundings.gaps if _lived_before(history, gap.until_ns)),
        ]
        #: Whether retries of the key decide about the end of the Job (up to 1.19).
        self._retries_count = not rules.counting.backoff_limit_counts_failed_pods
        self._messages = frozenset(
            condition.message
            for revision in history.jobs
            for condition in revision.view.status.conditions
        )
        self._choices: tuple[int, Choices] | None = None

    def run(self) -> KeyReplay:
        """Explain every write of the key."""
        walk = self._walk(stop_at_divergence=True)
        if walk is None:
            # Something is not explained: perhaps because it is somebody else's work.
            self.foreign = self._find_foreign()
            walk = self._walk(stop_at_divergence=False)
            assert walk is not None  # noqa: S101 - it does not stop
        return walk

    def _walk(self, *, stop_at_divergence: bool) -> KeyReplay | None:
        """Walk through the writes; None if a divergence stopped it."""
        hidden = {write.index for write in self.history.writes if write.hidden}
        state = State(0, JobMemory(), PodCache(), 0, 0, frozenset(self.foreign) | hidden)
        walk = _Walk()
        writes = self.history.writes
        while True:
            state = self._skip_done(state)
            if state.index >= len(writes):
                return walk.result(self.history, state)
            state = self._restarted(state)
            write = writes[state.index]
            options = self._explanations(state)
            verdict = self._without_sync(write)
            found = next(options, None) if verdict is None else None
            if verdict is None and found is None:
                verdict = self._without_explanation(write, state)
            if verdict is not None:
                walk.trail.append(verdict)
                state = replace(state, done=state.done | {write.index})
                continue
            if found is None:
                found = walk.turn_back(state)
            else:
                walk.step(state, options, found)
            if found is None and stop_at_divergence:
                return None
            if found is None:
                found = self._nearest(walk.give_up(state))
                walk.trail.append(("sync", found))
            state = found.state

    @property
    def was_blind(self) -> bool:
        """Whether there is a time in the key's life that the record did not see."""
        return bool(self._blind_until_ns)

    def choices(self, index: int, *, retries_unseen: int = 0) -> Choices:
        """What upstream leaves open, as the writes from `index` to the next status write chose."""
        known = self._choices
        if known is None or known[0] != index or known[1].retries_unseen != retries_unseen:
            picked = []
            writes = self.history.writes
            for position in range(index, len(writes)):
                write = writes[position]
                if write.kind is WriteKind.STATUS_UPDATE:
                    break
                if write.kind in (WriteKind.POD_DELETE, WriteKind.FINALIZER_REMOVAL):
                    picked.append(write.uid)
            known = (index, Choices(frozenset(picked), self._messages, retries_unseen))
            self._choices = known
        return known[1]

    # Single steps.

    def _skip_done(self, state: State) -> State:
        index = state.index
        while index < len(self.history.writes) and index in state.done:
            index += 1
        if index == state.index:
            return state
        done = frozenset(position for position in state.done if position >= index)
        return replace(state, index=index, done=done)

    def _restarted(self, state: State) -> State:
        """A new controller manager starts with an empty memory; a blind time leaves it unknown."""
        if not self.surroundings.restarts and not self._blind_until_ns:
            return state
        write = self.history.writes[state.index]
        passed = sum(1 for r in self.surroundings.restarts if r.until_ns <= write.recv_ns)
        if passed != state.restarts_seen:
            state = replace(state, memory=JobMemory(), restarts_seen=passed)
        listed = sum(1 for at_ns in self._blind_until_ns if at_ns <= write.recv_ns)
        if listed != state.listings_seen:
            state = replace(state, memory=JobMemory(), listings_seen=listed, certain=False)
        return state

    def _pods_listed(self, at_ns: int) -> int:
        """How many pod revisions precede the end of the last blind time."""
        end_ns = max(at for at in self._blind_until_ns if at <= at_ns)
        return sum(1 for revision in self.history.pods if revision.recv_ns <= end_ns)

    def _why_uncertain(self, write: Write) -> str:
        at_ns = max(at for at in self._blind_until_ns if at <= write.recv_ns)
        for gap in self.surroundings.gaps:
            if gap.from_ns <= at_ns and gap.until_ns >= at_ns - CLOCK_SLACK_NS:
                return f"the first sync after a {gap.why} may have begun in it"
        return "the Job was there before the record began: its first sync may have begun earlier"

    def _without_sync(self, write: Write) -> tuple[str, object] | None:
        """Writes that need no sync of the key: the orphan worker's, the garbage collector's."""
        if write.kind is WriteKind.POD_DELETE:
            job = self.history.job_before(write.rv)
            gone = job is not None and (job.type == "DELETED" or job.view.deleted_ns is not None)
            return ("foreign", (write, "")) if gone and not self._owned_up(write) else None
        if write.kind is not WriteKind.FINALIZER_REMOVAL:
            return None
        why = self._orphan_reason(write)
        return None if why is None else ("orphan", (write, why))

    def _without_explanation(self, write: Write, state: State) -> tuple[str, object] | None:
        """What else a write may be that no cut explains."""
        if self._not_ours(write):
            early = self._nearest(state) if self._owned_up(write) else None
            if early is not None and all(p.verdict == "early" for p in early.problems):
                return None
            return ("foreign", (write, ""))
        if not state.certain:
            return ("unknowable", (write, self._why_uncertain(write)))
        return None

    def _orphan_reason(self, write: Write) -> str | None:
        """Why the orphan worker takes this finalizer off, if it does."""
        assert write.pod is not None and write.pod.previous is not None  # noqa: S101, PT018
        before = write.pod.previous.view
        if before.controller is None:
            return "the pod has no controller any more"
        job = self.history.job_before(write.rv)
        if job is None or job.type == "DELETED" or job.view.uid != before.controller.uid:
            return "the pod's Job is gone"
        if job.view.status.finished is not None:
            return "the pod's Job has finished"
        return None

    def _not_ours(self, write: Write) -> bool:
        """Whether a write that no sync explains may be somebody else's: anybody deletes pods.

        An Event of the controller that names the pod may come from a second, idle DELETE by a sync
        that had not seen the first; the judge looks for that sync.
        """
        return write.kind is WriteKind.POD_DELETE

    def _owned_up(self, write: Write) -> bool:
        """Whether an Event of the controller says that it deleted this pod."""
        return write.pod is not None and write.pod.view.name in self._deleted_by_event

    # The search for a cut.

    def _explanations(self, state: State) -> Iterator[Explanation]:
        """Every cut that explains the next write, newest first."""
        for refusals in (False, True) if self.failed_creates else (False,):
            for cuts_off in (False, True) if self._interrupted(state) else (False,):
                for retries_unseen in self._retries_unseen(state):
                    for job in self._job_candidates(state):
                        yield from self._under_job(
                            state,
                            job,
                            refusals=refusals,
                            cuts_off=cuts_off,
                            retries_unseen=retries_unseen,
                        )

    def _retries_unseen(self, state: State) -> tuple[int, ...]:
        """How many retries of the key to assume beside those of the syncs that are explained.

        Right after a sync has written a failure, syncs that still have the Job as it was before see
        the same failure as new, write nothing that shows and fail again. So there are at most a few
        for each retry that shows; refused creations are retried as often as it takes.
        """
        if not self._retries_count:
            return (0,)
        most = UNSEEN_RETRIES_PER_RETRY * state.memory.requeues
        if self.failed_creates:
            most = max(most, len(self.history.events))
        return (0, most) if most else (0,)

    def _interrupted(self, state: State) -> bool:
        at_ns = self.history.writes[state.index].recv_ns
        near_end = self.surroundings.end_ns - at_ns < self.surroundings.end_slack_ns
        return near_end or any(
            blind.from_ns - CUT_OFF_NS <= at_ns <= blind.until_ns
            for blind in (*self.surroundings.restarts, *self.surroundings.gaps)
        )

    def _job_candidates(self, state: State) -> Iterator[Revision[JobView]]:
        rv = self.history.writes[state.index].rv
        newest = self.history.job_before(rv)
        if newest is None:
            return
        floor = max(state.job_floor, self._own_write_floor(state))
        for position in range(newest.position, floor - 1, -1):
            revision = self.history.jobs[position]
            if revision.type != "DELETED":
                yield revision

    def _own_write_floor(self, state: State) -> int:
        """The oldest revision of the Job that the controller's cache can still have held.

        A key is never synced twice at a time, so a sync begins after the last one's status write;
        from 1.36 on it is refused until the informer has shown that write, before it may come a
        moment earlier.
        """
        at_ns = self.history.writes[state.index].recv_ns
        written = state.own_status
        if written is None or self.rules.overwrites_status:
            return 0
        if not self.rules.refuses_stale_sync and at_ns - written.recv_ns < STALE_JOB_NS:
            return 0
        return written.position

    def _under_job(
        self,
        state: State,
        job: Revision[JobView],
        *,
        refusals: bool,
        cuts_off: bool,
        retries_unseen: int,
    ) -> Iterator[Explanation]:
        history = self.history
        newest = history.pods_below(history.writes[state.index].rv)
        memories: list[JobMemory] | None = None
        cache = state.cache.copy()
        for cut in range(newest, state.pod_floor - 1, -1):
            cache.move_to(history.pods, cut)
            if cut == newest:
                memory = self.memory_at(state, newest, job.view.uid)
            else:
                if memories is None:
                    memories = self.memories(state, newest, job.view.uid)
                memory = memories[cut - state.pod_floor]
            found = self._attempt_times(
                state,
                job,
                cache,
                memory,
                cut,
                refusals=refusals,
                cuts_off=cuts_off,
                retries_unseen=retries_unseen,
            )
            if found is not None:
                yield found

    def _memory_of(self, state: State, job_uid: str) -> JobMemory:
        """The memory at the floor; a Job's end clears it for the next one of the same name."""
        before = self.history.jobs[state.job_floor].view.uid if self.history.jobs else job_uid
        return state.memory.copy() if before == job_uid else JobMemory()

    def memory_at(self, state: State, newest: int, job_uid: str) -> JobMemory:
        """The key's memory when the pod informer has caught up with `newest` revisions."""
        memory = self._memory_of(state, job_uid)
        for revision in self.history.pods[state.pod_floor : newest]:
            old = revision.previous.view if revision.previous is not None else None
            pod_observed(
                memory, old, revision.view, deleted=revision.type == "DELETED", job_uid=job_uid
            )
        return memory

    def memories(self, state: State, newest: int, job_uid: str) -> list[JobMemory]:
        """The key's memory at each position of the pod stream from the floor on."""
        memory = self._memory_of(state, job_uid)
        memories = [memory.copy()]
        for revision in self.history.pods[state.pod_floor : newest]:
            old = revision.previous.view if revision.previous is not None else None
            pod_observed(
                memory, old, revision.view, deleted=revision.type == "DELETED", job_uid=job_uid
            )
            memories.append(memory.copy())
        return memories

    def _earliest_ns(self, state: State, job: Revision[JobView], cut: int) -> int:
        """When a sync that had seen so much can have begun at the earliest."""
        seen_ns = self.history.pods[cut - 1].recv_ns if cut else 0
        latest_ns = self.history.writes[state.index].recv_ns
        return min(max(job.recv_ns, seen_ns, state.last_write_ns), latest_ns)

    def _attempt_times(
        self,
        state: State,
        job: Revision[JobView],
        cache: PodCache,
        memory: JobMemory,
        cut: int,
        *,
        refusals: bool,
        cuts_off: bool,
        retries_unseen: int,
    ) -> Explanation | None:
        """Try the latest time at which the sync can have run, and just before each timer."""
        history = self.history
        latest_ns = history.writes[state.index].recv_ns
        earliest_ns = self._earliest_ns(state, job, cut)
        asked: set[int] = set()
        queue = [latest_ns]
        tried: set[int] = set()
        while queue:
            now_ns = queue.pop()
            if now_ns in tried:
                continue
            tried.add(now_ns)
            found, timers = self._attempt(
                state,
                job,
                cache,
                memory.copy(),
                cut,
                now_ns=now_ns,
                earliest_ns=earliest_ns,
                refusals=refusals,
                cuts_off=cuts_off,
                retries_unseen=retries_unseen,
            )
            if found is not None:
                return found
            for timer in timers:
                if timer not in asked and earliest_ns - CLOCK_SLACK_NS <= timer <= now_ns:
                    asked.add(timer)
                    queue.append(timer - 1)
        return None

    def _attempt(
        self,
        state: State,
        job: Revision[JobView],
        cache: PodCache,
        memory: JobMemory,
        cut: int,
        *,
        now_ns: int,
        earliest_ns: int,
        refusals: bool = False,
        cuts_off: bool = False,
        lenient: bool = False,
        retries_unseen: int = 0,
    ) -> tuple[Explanation | None, list[int]]:
        # A time that no API object can hold marks what the controller took from its clock.
        clock = SyncClock(now_ns if now_ns % NS_PER_S else now_ns + 1)
        api = ObservedApi(
            self.history,
            state.index,
            clock,
            earliest_ns,
            cuts_off,
            refusals,
            lenient,
            state.done,
            CLOCK_SLACK_NS,
            self.rules,
            self.surroundings.namespaces_ending.get(self.history.namespace),
        )
        ended = False
        result = DONE
        try:
            result = sync_job(
                job.view,
                cache.pods(),
                memory,
                api,
                clock=clock,
                rules=self.rules,
                choices=self.choices(state.index, retries_unseen=retries_unseen),
            )
        except Mismatch:
            return None, clock.asked
        except RecordEnds:
            ended = True
        if not api.consumed:
            return None, clock.asked
        consumed = sorted(api.consumed, key=lambda write: write.index)
        if ended and self._lives_on(consumed[-1], api.taken, state):
            return None, clock.asked
        extra = self._left_over(state, consumed, api.taken)
        if extra and not lenient:
            return None, clock.asked
        if consumed[0].index != state.index and not lenient:
            return None, clock.asked
        api.problems += extra
        found = self._explanation(
            state,
            job,
            cut,
            memory=memory,
            cache=cache,
            api=api,
            consumed=consumed,
            now_ns=now_ns,
            result=None if ended else result,
        )
        return found, clock.asked

    def _explanation(
        self,
        state: State,
        job: Revision[JobView],
        cut: int,
        *,
        memory: JobMemory,
        cache: PodCache,
        api: ObservedApi,
        consumed: list[Write],
        now_ns: int,
        result: SyncResult | None,
    ) -> Explanation:
        """What a run of the sync under this cut says, and the state that it leaves.

        `result` is None where the record ends inside the sync.
        """
        history, clock = self.history, api.clock
        first = history.writes[state.index]
        newest = history.pods_below(first.rv)
        lag_ns = max(0, first.recv_ns - history.pods[cut].recv_ns) if cut < newest else 0
        seen_ns = [history.pods[cut - 1].recv_ns] if cut else []
        input_ns = max([job.recv_ns, *seen_ns])
        timer_ns = max((at for at in clock.asked if at <= now_ns), default=0)
        wrote_status = consumed[-1].kind is WriteKind.STATUS_UPDATE
        own_status = [write.job for write in consumed if write.job is not None][-1:]
        after = State(
            index=state.index,
            memory=memory,
            cache=cache.copy(),
            pod_floor=cut,
            job_floor=job.position,
            done=state.done | api.taken,
            last_write_ns=consumed[-1].recv_ns,
            restarts_seen=state.restarts_seen,
            listings_seen=state.listings_seen,
            own_status=own_status[0] if own_status else state.own_status,
            certain=state.certain or (wrote_status and cut >= self._pods_listed(first.recv_ns)),
        )
        return Explanation(
            writes=tuple(consumed),
            job=job,
            pod_cut=cut,
            pods_unseen=newest - cut,
            lag_ns=lag_ns,
            now_ns=now_ns,
            due_ns=max(input_ns, timer_ns),
            timed=timer_ns > input_ns,
            events=tuple(api.events),
            problems=tuple(api.problems),
            refused=api.refused,
            cut_off=result is None,
            notes=tuple(clock.notes),
            woke_itself=result is None or result.error or result.wake_after_ns is not None,
            state=after,
        )

    def _lives_on(self, last: Write, taken: set[int], state: State) -> bool:
        """Whether the controller that a sync was cut off with goes on writing.

        A cut-off means that its process died: the key's next write is its successor's. At the end
        of a record nothing follows at all.
        """
        for write in self.history.writes[last.index + 1 :]:
            if write.index in taken or write.index in state.done or self._not_ours(write):
                continue
            return not any(
                blind.from_ns - CUT_OFF_NS <= last.recv_ns and write.recv_ns >= blind.until_ns
                for blind in (*self.surroundings.restarts, *self.surroundings.gaps)
            )
        return False

    def _left_over(self, state: State, consumed: list[Write], taken: set[int]) -> list[Problem]:
        """Writes in the midst of the sync that it does not explain."""
        problems = []
        for index in range(state.index, consumed[-1].index):
            write = self.history.writes[index]
            if index in taken or index in state.done:
                continue
            if write.kind is WriteKind.FINALIZER_REMOVAL and self._orphan_reason(write):
                continue
            if self._not_ours(write):
                continue
            problems.append(Problem(write.kind, "extra", write, "nothing of the kind"))
        return problems

    # What stands when no cut explains a write.

    def _nearest(self, state: State) -> Explanation:
        """The attempt that leaves the least unexplained, told with its problems."""
        history = self.history
        write = history.writes[state.index]
        best: tuple[tuple[int, int, int], Explanation] | None = None
        for job in list(self._job_candidates(state))[:3]:
            newest = history.pods_below(write.rv)
            memories = self.memories(state, newest, job.view.uid)
            cache = state.cache.copy()
            for cut in range(newest, max(state.pod_floor, newest - 40) - 1, -1):
                cache.move_to(history.pods, cut)
                for now_ns in (write.recv_ns, _FUTURE_NS + 1):
                    found, timers = self._attempt(
                        state,
                        job,
                        cache,
                        memories[cut - state.pod_floor].copy(),
                        cut,
                        now_ns=now_ns,
                        earliest_ns=self._earliest_ns(state, job, cut),
                        refusals=self.failed_creates,
                        lenient=True,
                    )
                    if found is None:
                        continue
                    if now_ns > write.recv_ns:
                        found = _told_early(found, timers)
                    misses = found.writes[0].index != state.index
                    if not found.problems:
                        continue  # the strict search refused it: something that counts is wrong
                    rank = (len(found.problems) + 2 * misses, -job.position, newest - cut)
                    if best is None or rank < best[0]:
                        # What the controller waits for after a divergence is not known.
                        found.state.memory.expectations = None
                        best = (rank, found)
        alone = Problem(write.kind, "extra", write, "nothing of the kind at any cut")
        if best is None or best[1].writes[0].index != state.index:
            after = replace(state, done=state.done | {write.index}, last_write_ns=write.recv_ns)
            return Explanation(
                writes=(write,),
                job=None,
                pod_cut=state.pod_floor,
                pods_unseen=0,
                lag_ns=0,
                now_ns=write.recv_ns,
                due_ns=write.recv_ns,
                timed=False,
                events=(),
                problems=(alone,),
                refused=0,
                cut_off=False,
                notes=(),
                woke_itself=True,
                state=after,
            )
        return best[1]


def _told_early(found: Explanation, timers: list[int]) -> Explanation:
    """An attempt in the far future: what it explains came before its timer."""
    first = found.writes[0]
    bounds = [at_ns for at_ns in timers if at_ns > first.recv_ns]
    if found.problems or not bounds:
        return found
    due = format_rfc3339(min(bounds))
    early = Problem(first.kind, "early", first, f"nothing of the kind before {due}")
    return replace(found, problems=(early,))


def _lived_before(history: History, at_ns: int) -> bool:
    return bool(history.jobs) and history.jobs[0].recv_ns < at_ns
