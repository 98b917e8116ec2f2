"""Whether a sync can have seen nothing but what the search took it to have seen.

The search is content with the first state of the caches that explains a write. Here all the others
are asked: one that explains the same writes, and from which the rest of the key is explained as
well, may have been the true one. States that the sync could not tell apart, since it decided by the
same numbers and left the same memory, are one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from tracekit.check.replay.attempts import Exhausted
from tracekit.check.replay.backtracking import next_open
from tracekit.check.replay.cuts import Cut, Effort
from tracekit.check.replay.search import KeyWalker
from tracekit.check.replay.search_state import Explanation, KeyReplay, State


class _Unknown(Exception):  # noqa: N818 - a signal, not an error
    """It would take too much to know, or what the search did is not done again here."""


def forced_syncs(walker: KeyWalker, replay: KeyReplay) -> list[bool | None]:
    """For each sync of the replay whether no other state of the caches explains it.

    `walker` is one of the same key, by the same rules. None: not known. That holds for a sync that
    nothing explains, where another state leads to syncs that left no write or whose handlers were
    behind, which are not supposed a second time, and from where on all of them together have taken
    as many attempts as turning back from one write may.
    """
    without_sync = frozenset(a.write.index for a in replay.without_sync)
    first = next((sync.began.state for sync in replay.syncs if sync.began is not None), None)
    limit = walker.search.allowance(first) if first is not None else 0
    others = _OtherCaches(walker, replay.syncs, without_sync, limit)
    return [others.forced(number) for number in range(len(replay.syncs))]


@dataclass(slots=True)
class _OtherCaches:
    walker: KeyWalker
    syncs: Sequence[Explanation]
    without_sync: frozenset[int]  # writes that no sync of the key made
    limit: int  # of the attempts that the search makes

    def forced(self, number: int) -> bool | None:
        sync = self.syncs[number]
        if not _is_plain(sync):
            return None
        known = True
        for cut in self._others(sync):
            try:
                found = self._explained(sync, cut)
                if found is not None and self._goes_on(number, found):
                    return False
            except (_Unknown, Exhausted):
                known = False
        return True if known else None

    def _others(self, sync: Explanation) -> Iterator[Cut]:
        """The other states of the caches at which it may have begun; handlers keep up."""
        search, began = self.walker.search, sync.began
        assert began is not None  # noqa: S101 - it is plain
        for job in search.job_candidates(began.state, Effort.CUTS):
            floor, newest = search.window(began.state, Effort.CUTS)
            for cut in search.cuts_at(began.state, job, range(newest, floor - 1, -1)):
                own = cut.job is sync.job and cut.pods == sync.pod_cut
                if not own and search.stale(began.state, cut) is None:
                    yield cut

    def _explained(self, sync: Explanation, cut: Cut) -> Explanation | None:
        """The sync on other caches, if it writes the same and not by the same numbers."""
        began = sync.began
        assert began is not None  # noqa: S101 - it is plain
        if self.walker.search.attempts >= self.limit:
            raise _Unknown
        found = self.walker.search.at_its_time(began.state, cut, began.assume)
        if found is None or found.writes != sync.writes or _is_alike(found, sync):
            return None
        return found

    def _goes_on(self, number: int, found: Explanation) -> bool:
        """Whether what follows is explained after it as well."""
        state = self._after(found)
        for later in self.syncs[number + 1 :]:
            if not _is_plain(later) or self.walker.search.attempts >= self.limit:
                raise _Unknown
            assert later.began is not None  # noqa: S101 - it is plain
            if state.identity == self._without_apart(later.began.state).identity:
                return True
            again = self._again(state, later)
            if again is None:
                return False
            state = self._after(again)
        return True

    def _again(self, state: State, sync: Explanation) -> Explanation | None:
        """A later sync: on the caches that the search found, if that can be, or on any."""
        search = self.walker.search
        assert sync.began is not None  # noqa: S101 - it is plain
        assert sync.job is not None  # noqa: S101 - it is plain
        if sync.pod_cut >= state.pod_floor and sync.job.position >= state.job_floor:
            for cut in search.cuts_at(state, sync.job, [sync.pod_cut]):
                found = search.at_its_time(state, cut, sync.began.assume)
                if found is not None and found.writes == sync.writes:
                    return found
        likely = search.explanations(state, Effort.CUTS)
        return next((found for found in likely if found.writes == sync.writes), None)

    def _after(self, found: Explanation) -> State:
        """The state at the next write that a sync of the key made."""
        left = replace(found, state=self._without_apart(found.state))
        return self.walker.after(left, left.state, [])

    def _without_apart(self, state: State) -> State:
        index, done = next_open(state.index, state.done | self.without_sync)
        return replace(state, index=index, done=done)


def _is_plain(sync: Explanation) -> bool:
    """Whether it is explained, with no sync before it that nobody saw, by handlers that kept up."""
    return (
        sync.began is not None
        and sync.job is not None
        and not (sync.problems or sync.silent or sync.handlers_behind)
    )


def _is_alike(found: Explanation, sync: Explanation) -> bool:
    """Whether the sync could not tell the one state of its caches from the other."""
    return (found.notes, found.events, found.state.memory.identity) == (
        sync.notes,
        sync.events,
        sync.state.memory.identity,
    )
