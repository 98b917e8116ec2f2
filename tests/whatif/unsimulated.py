"""A model without a simulation, for tests of what is made of its runs."""

from __future__ import annotations

from collections.abc import Sequence

from tracekit.answers.whatif.course import JobCourse
from tracekit.answers.whatif.model import ModelledJob
from tracekit.answers.whatif.three_worlds import ThreeWorlds
from tracekit.model.process.manager import ManagerFlags
from tracekit.versions.era import Era


class Unsimulated(ThreeWorlds):
    """All Jobs of a run take one course."""

    def run(
        self,
        uids: Sequence[str],
        era: Era,
        flags: ManagerFlags,
        seed: int,
        *,
        settings: bool,
        by_pod: bool = False,
    ) -> dict[str, ModelledJob]:
        del flags, settings
        course, censored = self.course(era, seed, by_pod=by_pod), self.censored(era, seed)
        return {uid: ModelledJob(course, extrapolated=False, censored=censored) for uid in uids}

    def course(self, era: Era, seed: int, *, by_pod: bool) -> JobCourse:
        raise NotImplementedError

    def censored(self, era: Era, seed: int) -> str:
        """What a run needs that nobody saw; nothing."""
        del era, seed
        return ""
