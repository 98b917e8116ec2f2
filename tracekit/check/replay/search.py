"""The `observed` schedule: does some admissible cut explain each write of one key?

Syncs are anchored at the observed writes. For each, the Job's revision and the position in the pod
stream that the controller's caches had reached are searched (`cuts`); no position ever goes back
from one sync to the next. A cut explains a write when the ported controller, with the memory that
the earlier syncs left it, does exactly what was observed: the same creations, deletions and
patches, and the same status, down to the field.

Where a write finds no explanation, the search turns back by price (`backtracking`): to other cuts
of the syncs before it, to handlers behind their cache, to syncs between the writes that left none
(`silent`), to informers far behind. A state that another one stands for is not gone on from
(`dominance`). What none of this explains is a divergence; the nearest attempt is then taken as what
happened, so that one lie is told once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import islice

from msgspec.structs import replace

from tracekit.base.kube.views import JobView
from tracekit.check.replay.attempts import (
    ATTEMPTS_AT_LEAST,
    ATTEMPTS_UNSEARCHED,
    Exhausted,
)
from tracekit.check.replay.backtracking import Backtracking, Choice, Trail, next_open
from tracekit.check.replay.cuts import Effort
from tracekit.check.replay.dominance import memory_class, stands_for
from tracekit.check.replay.explanations import CutSearch
from tracekit.check.replay.history import Revision, Write, WriteKind
from tracekit.check.replay.interruptions import restarts_before
from tracekit.check.replay.key_facts import KeyEvidence
from tracekit.check.replay.nearest import nearest
from tracekit.check.replay.recorded_api import Assumptions
from tracekit.check.replay.search_state import (
    Entry,
    Explanation,
    Heuristic,
    KeyReplay,
    Retries,
    State,
    WithoutSync,
    WriteWithoutSync,
)
from tracekit.check.replay.unsigned_writes import miscounts, unsigned
from tracekit.check.verdict import Reason
from tracekit.ports.cache.pods import PodCache
from tracekit.ports.job.memory import JobMemory

#: So many earlier syncs are asked for more retries where the count of these ended the Job.
HUNCH_REACH = (2, 4, 8, 16)
#: So many earlier syncs are asked for one before them that forgot the retries.
FORGOT_REACH = 8
#: So far back is a deletion looked for that no Event could tell.
UNTOLD_REACH = 8


class KeyWalker(Backtracking[State, Entry]):
    """Walks through the writes of one key."""

    efforts = tuple(Effort)

    def __init__(
        self,
        facts: KeyEvidence,
        find_foreign: Callable[[], Mapping[int, str]],
        named: Mapping[int, str] | None = None,
    ) -> None:
        """`find_foreign` names the writes that somebody else made, by index, with the evidence.

        It is asked only when something cannot be explained: evidence is dear to read. `named` are
        those of which the record itself says so.
        """
        super().__init__(named or {}, find_foreign)
        self.facts = facts
        self.history = facts.history
        self.search = CutSearch(facts)
        #: Writes that no sync explains and nobody signed: other ways past them may be tried later.
        self._unattributed: dict[int, WriteWithoutSync] = {}
        where = self.history.namespace, self.history.name
        self._not_searched = facts.run_context.not_searched(*where)
        self._few_reported = facts.run_context.few_reported(*where)
        #: How many dead ends of this walk stand as divergences.
        self._contradicted = 0

    def run(self) -> KeyReplay:
        """Explain every write of the key."""
        found = self._walk()
        if found is None:  # something is somebody else's work
            found = self._walk()
        assert found is not None  # noqa: S101 - it asks for foreign writes only once
        return found

    def _walk(self) -> KeyReplay | None:
        """Walk through the writes; None if it turned out that others made some of them."""
        writes = self.history.writes
        self._unattributed, self._contradicted = {}, 0
        hidden = {write.index for write in writes if write.hidden}
        done = frozenset(self.foreign) | hidden
        trail: Trail[State, Entry] = Trail()
        first = State(0, JobMemory(), PodCache(), 0, 0, done=done, retries=Retries())
        state = self._settled(first, trail.entries)
        while state.index < len(writes):
            known = len(self.foreign)
            try:
                found = self.step(trail, state)
            except Exhausted:
                return self._undecided(trail, state, self._gave_up(), Reason.UNDECIDED)
            if found is None:
                if len(self.foreign) > known:
                    return None
                if self._not_searched is not None:
                    return self._undecided(trail, state, self._not_searched, Reason.MISFIT)
                found = self._without_explanation(trail, state)
            state = found
        return KeyReplay.along(self.history, state, trail.entries)

    def after(self, found: Entry, state: State, entries: list[Entry]) -> State:
        """The state that an entry leads to, at the next write that needs a sync."""
        if isinstance(found, Explanation):
            return self._settled(found.state, entries)
        known, retries = state.backoff_known, state.retries
        if found.reason is WithoutSync.UNKNOWABLE and found.write.index not in self._unattributed:
            known = known and not self.facts.may_have_failed(found.write.recv_ns)
            retries = None
        state = replace(state, done=state.done | {found.write.index}, retries=retries)
        return self._settled(replace(state, backoff_known=known), entries)

    # What turning back asks.

    def attempts_made(self) -> int:
        """How many attempts the key has asked for, those that were known already among them."""
        return self.search.attempts + self.search.recall.hits

    def allowance(self, dead: State) -> int:
        """How many more turning back from one write may cost.

        Half as many after each divergence of the Job but the first: what contradicts the rules
        again and again is not explained by going farther back.
        """
        if self._not_searched is not None:
            return ATTEMPTS_UNSEARCHED
        allowed = self.search.allowance(dead)
        if self._few_reported:
            return min(ATTEMPTS_UNSEARCHED, allowed)
        return max(min(ATTEMPTS_AT_LEAST, allowed), allowed >> max(0, self._contradicted - 1))

    def past(
        self, trail: Trail[State, Entry], way: Sequence[Choice[State]], most: int
    ) -> State | None:
        """From the choices before a dead end past it; on the way no attempt is made twice."""
        with self.search.recall.turning_back():
            return super().past(trail, way, most)

    def class_of(self, state: State) -> Hashable:
        """All by which syncs can tell two states apart, but for how old their caches may be."""
        return memory_class(self.facts, self.search.recall.asked, state)

    def stands_for(self, one: State, other: State) -> bool:
        """Whether a state admits all syncs that another one of its memory class does."""
        return stands_for(one, other)

    # What may become of a write.

    def options(self, state: State, effort: int) -> Iterator[Entry]:
        """The explanations of the next write, then what else it may be."""
        write = self.history.writes[state.index]
        if self._collected(write):
            yield WriteWithoutSync(WithoutSync.FOREIGN, write)
        yield from self._whole_first(state, self.search.explanations(state, Effort(effort)))
        if self.facts.may_be_foreign(write) and not self.facts.owned_up(write):
            if effort == Effort.CUTS and self._events_spent(state):
                # That no Event names it says nothing: it may be of a sync on an older Job.
                found = self.search.explanations(state, Effort.HANDLERS)
                yield from self._whole_first(state, found)
            yield WriteWithoutSync(WithoutSync.FOREIGN, write)
        elif not state.certain and self.facts.began_unseen(write):
            yield self._unseen(write)
        elif write.index in self._unattributed:
            yield self._unattributed[write.index]

    def _collected(self, write: Write) -> bool:
        """Whether a pod is deleted whoever else may do so, and the controller's Event is later.

        Where an audit log names who deleted it there is nothing to guess.
        """
        if write.kind is not WriteKind.POD_DELETE or write.actor is not None:
            return False
        return self.facts.deleted_again(write) and self.facts.collected(write)

    def _whole_first(self, state: State, found: Iterator[Explanation]) -> Iterator[Explanation]:
        """Where no Event could tell of deletions, first the syncs that leave none to others.

        But none that takes more for granted than one that leaves some.
        """
        if not self._events_spent(state):
            yield from found
            return
        partly: list[Explanation] = []
        for sync in found:
            if partly and _assumed(sync) != _assumed(partly[0]):
                yield from partly
                partly = []
            if self._leaves_deletions(sync, state):
                partly.append(sync)
            else:
                yield sync
        yield from partly

    def _leaves_deletions(self, sync: Explanation, state: State) -> bool:
        """Whether there are deletions among the writes of a sync that it does not make."""
        own = {write.index for write in sync.writes}
        among = self.history.writes[state.index : sync.writes[-1].index]
        return any(
            write.kind is WriteKind.POD_DELETE and write.index not in own | state.done
            for write in among
        )

    @staticmethod
    def _doubted(trail: Trail[State, Entry]) -> Choice[State] | None:
        """The first of the last deletions in a row that nothing but exclusion says are others'."""
        first = None
        for choice in reversed(trail.choices):
            entry = trail.entries[choice.length]
            if not isinstance(entry, WriteWithoutSync) or entry.reason is not WithoutSync.FOREIGN:
                break
            first = choice
        return first

    def heuristics(self, trail: Trail[State, Entry], dead: State) -> list[Choice[State]]:
        """Where earlier syncs had seen an older Job, or counted more retries or fewer."""
        syncs = [
            (choice, found)
            for choice in trail.choices
            if isinstance(found := trail.entries[choice.length], Explanation)
        ]
        begun: list[tuple[Choice[State], Heuristic]] = []
        ended = self._ended_with(self.history.writes[dead.index])
        # The nearest first: a sync without a write is supposed as late as can be.
        last = Choice(dead, len(trail.entries))
        if ended is not None and self.search.ended_by_retries(ended):
            # What deletes pods without an Event, when these were spent, may be the same sync.
            unreported = self._doubted(trail)
            ends = [last]
            if unreported is not None and self._events_spent(unreported.state):
                ends.insert(0, unreported)
            for end in ends:
                begun += self._counting_to(end, ended, syncs, own=end is not last)
            return self._begin(begun)
        # Of a deletion that no Event could tell it may be wrong that another made it.
        unreported_end = self._unreported_end(trail)
        if unreported_end is not None:
            begun += self._counting_to(*unreported_end, syncs, own=True)
        if self.search.beyond_retries(dead):
            near = [last, *(c for c, _ in reversed(syncs) if c.state.memory.requeues)]
            near = near[:FORGOT_REACH]
            begun += [(c, Heuristic(dead.index, forgot_at=c.state.index)) for c in near]
        elif (seen := self.search.older_job(dead)) is not None:
            heuristic = Heuristic(dead.index, seen=seen.position)
            newer = (c for c, found in syncs if found.job and found.job.position > seen.position)
            begun += [(choice, heuristic) for choice in islice(newer, 1)]
        return self._begin(begun)

    @staticmethod
    def _begin(begun: Sequence[tuple[Choice[State], Heuristic]]) -> list[Choice[State]]:
        return [
            Choice(replace(choice.state, heuristic=heuristic), choice.length)
            for choice, heuristic in begun
        ]

    @staticmethod
    def _counting_to(
        end: Choice[State],
        ended: Revision[JobView],
        syncs: Sequence[tuple[Choice[State], Explanation]],
        *,
        own: bool,
    ) -> Iterator[tuple[Choice[State], Heuristic]]:
        """Where the syncs before an end may have counted the retries that led to it."""
        heuristic = Heuristic(end.state.index, retries=ended.view.spec.backoff_limit, own=own)
        before = [choice for choice, _ in syncs if choice.length < end.length]
        near = [end, *(c for reach in HUNCH_REACH for c in before[-reach:][:1])]
        return ((choice, heuristic) for choice in near)

    def _unreported_end(
        self, trail: Trail[State, Entry]
    ) -> tuple[Choice[State], Revision[JobView]] | None:
        """The last deletion put down to others that the sync may have made that ended the Job.

        For its retries, and when no Event could tell of it any more.
        """
        for choice in reversed(trail.choices[-UNTOLD_REACH:]):
            entry = trail.entries[choice.length]
            if (
                not isinstance(entry, WriteWithoutSync)
                or entry.write.kind is not WriteKind.POD_DELETE
            ):
                continue
            ended = self._ends(entry.write)
            if ended is not None and self.search.ended_by_retries(ended):
                return (choice, ended) if self._events_spent(choice.state) else None
        return None

    def _events_spent(self, state: State) -> bool:
        """Whether no Event could tell of the next write: the Job had spent those that it has."""
        at_ns = self.history.writes[state.index].recv_ns
        return self.facts.refused.spent(at_ns, at_ns) is not None

    def _ended_with(self, write: Write) -> Revision[JobView] | None:
        """The status that a sync wrote with this write: what ends a Job deletes its pods first."""
        if write.kind is WriteKind.POD_DELETE:
            return self._ends(write) if self.facts.owned_up(write) else None
        return write.job

    def _ends(self, write: Write) -> Revision[JobView] | None:
        """The status that comes after a deletion and those that follow it."""
        later = self.history.writes[write.index :]
        return next((w.job for w in later if w.kind is not WriteKind.POD_DELETE), None)

    def by_heuristic(self, state: State, effort: int) -> Iterator[Entry]:
        """The ways on an old Job; or those that count retries, also in a sync that failed again."""
        heuristic = state.heuristic
        assert heuristic is not None  # noqa: S101 - `heuristics` gave it one
        if heuristic.seen is not None:
            yield from self.options(state, Effort.HANDLERS)
            return
        if heuristic.forgot_at is not None:
            forgotten = state.index == heuristic.forgot_at
            for start in self.search.forgotten(state) if forgotten else (state,):
                yield from self.options(start, effort)
            return
        for more in (Effort.CUTS, Effort.HANDLERS):
            found = self._counting(state, heuristic, more)
            if found:
                break
        yield from _outermost(sorted(found, key=lambda entry: self._miscounted(entry, heuristic)))

    def _counting(self, state: State, heuristic: Heuristic, effort: Effort) -> list[Entry]:
        """The ways on from here, also with more retries, or with fewer if they are too many."""
        found = [*self.options(state, effort)]
        syncs = [entry for entry in found if isinstance(entry, Explanation)]
        if heuristic.own and state.index >= heuristic.until:
            found = [*syncs]
        for again in self.search.failed_again(state, heuristic.retries):
            if state.index < heuristic.until:
                found += self.search.alike(again, syncs)
            elif again.memory.requeues >= heuristic.retries:
                found += self._whole_first(again, self.search.explanations(again, effort))
        if self._too_many(state, heuristic):
            for start in self.search.forgotten(state):
                found += self.options(start, effort)
        return found

    def _too_many(self, state: State, heuristic: Heuristic) -> bool:
        """Whether the count would be beyond the limit by the end, unless a sync cleared it."""
        counted = state.memory.requeues
        counts = self.history.status_writes(state.index, heuristic.until)
        return counted > 0 and heuristic.retries < counted + counts

    def _miscounted(self, entry: Entry, heuristic: Heuristic) -> tuple[int, int]:
        """How little a way fits the count of retries that ended the Job.

        Each sync from here to the end that writes may count one, and none of them was the end.
        """
        if not isinstance(entry, Explanation):
            return 2, 0
        counted = entry.state.memory.requeues
        counts = self.history.status_writes(entry.writes[-1].index + 1, heuristic.until)
        missing = heuristic.retries - counts - counted
        return (0, missing) if missing >= 0 else (1, -missing)

    def _unseen(self, write: Write) -> WriteWithoutSync:
        reason, why = self.facts.why_uncertain(write)
        return WriteWithoutSync(WithoutSync.UNKNOWABLE, write, why, reason)

    def _without_explanation(self, trail: Trail[State, Entry], state: State) -> State:
        """Past a write that nothing explains."""
        write = self.history.writes[state.index]
        unseen = self.facts.unseen_inputs(write)
        if unseen is not None:
            unsynced = WriteWithoutSync(WithoutSync.UNKNOWABLE, write, unseen, Reason.CENSORED)
            trail.entries.append(unsynced)
            return self.after(unsynced, replace(state, certain=False), trail.entries)
        found: Entry = nearest(self.search, state)
        unattributed = self._unsigned(found, write)
        if unattributed:
            trail.entries += unattributed
            trail.choices = trail.left
            self._unattributed |= {unsynced.write.index: unsynced for unsynced in unattributed}
            done = state.done.union(unsynced.write.index for unsynced in unattributed)
            return self._settled(replace(state, done=done), trail.entries)
        if self.facts.may_be_foreign(write):
            problems = found.problems if isinstance(found, Explanation) else ()
            early = problems and all(problem.verdict == "early" for problem in problems)
            if not early or self.facts.collected(write) or self.facts.deleted_again(write):
                found = WriteWithoutSync(WithoutSync.FOREIGN, write)
        if isinstance(found, Explanation):
            self._contradicted += 1
        trail.entries.append(found)
        return self.after(found, state, trail.entries)

    def _unsigned(self, found: Entry, first: Write) -> list[WriteWithoutSync]:
        """What stands in the way of an attempt and may be anybody's work: it is set aside."""
        problems = found.problems if isinstance(found, Explanation) else ()
        asked = [problem.write for problem in problems if problem.write is not None]
        asked = [write for write in asked if write is not first]
        others = {problem.write for problem in problems if miscounts(problem)}
        rules = self.facts.rules
        unattributed = [
            WriteWithoutSync(WithoutSync.UNKNOWABLE, write, why, Reason.NOT_RECORDED)
            for write in (first, *asked)
            if (why := unsigned(self.history, write, rules, other_counts=write in others))
        ]
        if problems and all(problem.verdict == "extra" for problem in problems):
            return unattributed if {unsynced.write for unsynced in unattributed} >= {*asked} else []
        # What does not fit else may follow from it.
        return [
            a for a in unattributed if a.write is first or a.write.kind is WriteKind.STATUS_UPDATE
        ]

    def _gave_up(self) -> str:
        return (
            f"the search gave up after {self.search.attempts} attempts: too many states of the "
            "caches would have to be tried"
        )

    def _undecided(
        self, trail: Trail[State, Entry], state: State, why: str, reason: Reason
    ) -> KeyReplay:
        """The search ends here: nothing is said of what is left."""
        for write in self.history.writes[state.index :]:
            if write.index not in state.done:
                trail.entries.append(WriteWithoutSync(WithoutSync.UNKNOWABLE, write, why, reason))
        writes = len(self.history.writes)
        state = replace(state, index=writes, done=frozenset(), certain=False)
        return KeyReplay.along(self.history, state, trail.entries)

    # What needs no choice.

    def _settled(self, state: State, entries: list[Entry]) -> State:
        """At the next write that needs a sync; those that need none join the trail."""
        writes = self.history.writes
        while True:
            state = self._skip_done(state)
            if state.index >= len(writes):
                return state
            unsynced = self._without_sync(writes[state.index])
            if unsynced is None:
                return self._interrupted(state)
            entries.append(unsynced)
            state = replace(state, done=state.done | {unsynced.write.index})

    def _skip_done(self, state: State) -> State:
        index, done = next_open(state.index, state.done)
        return state if index == state.index else replace(state, index=index, done=done)

    def _interrupted(self, state: State) -> State:
        """A new controller manager starts with an empty memory; a blind time leaves it unknown."""
        restarts, blind = self.facts.run_context.restarts, self.facts.blind
        if not restarts and not blind:
            return state
        write = self.history.writes[state.index]
        at_ns = write.recv_ns
        count, until_ns = restarts_before(self.facts.run_context, write)
        if count > state.restarts_seen:
            state = state.in_a_new_process(min(until_ns, at_ns), count)
        return self.search.after_blind_times(state, at_ns)

    def _without_sync(self, write: Write) -> WriteWithoutSync | None:
        """Writes that need no sync of the key: the orphan worker's, the garbage collector's.

        And those of a sync of a Job of which the record shows no such early revision.
        """
        unseen = self.facts.why_job_unseen(write)
        if unseen is not None:
            return WriteWithoutSync(WithoutSync.UNKNOWABLE, write, unseen[1], unseen[0])
        if write.kind is WriteKind.POD_DELETE:
            gone = self.facts.collected(write) and not self.facts.owned_up(write)
            return WriteWithoutSync(WithoutSync.FOREIGN, write) if gone else None
        if write.kind is not WriteKind.FINALIZER_REMOVAL:
            return None
        why = self.facts.orphan_reason(write)
        return None if why is None else WriteWithoutSync(WithoutSync.ORPHAN_WORKER, write, why)


def _assumed(sync: Explanation) -> Assumptions | None:
    """What the explanation of a sync takes for granted."""
    return sync.began.assume if sync.began is not None else None


def _outermost(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Of the ways that leave the same memory those on the newest caches and on the oldest.

    The oldest leave the most open; those in between lead nowhere that these two do not.
    """
    alike: dict[object, list[Entry]] = {}
    for entry in entries:
        same: object = id(entry)
        if isinstance(entry, Explanation):
            same = entry.state.memory.identity, entry.state.done, entry.state.index
        alike.setdefault(same, []).append(entry)
    for group in alike.values():
        yield from {id(entry): entry for entry in (group[0], group[-1])}.values()
