"""What the runs of one question have in common."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from tracekit.answers.whatif.changes import Setting
from tracekit.answers.whatif.cron_changes import CronSetting
from tracekit.check.replay.run_context import RunContext
from tracekit.model.process.manager import ManagerFlags
from tracekit.model.simulate.draws import Timing
from tracekit.versions.era import Era
from tracekit.versions.job import JobRules

#: Multiples of it, without their whole part, lie evenly between 0 and 1 however few there are.
_SPREAD: Final = 0.618


class Plan(Struct, frozen=True):
    """What the runs of one question have in common."""

    recorded: Era
    target: Era
    run_context: RunContext
    flags: ManagerFlags
    target_flags: ManagerFlags
    settings: tuple[Setting, ...] = ()
    draws: int = 1
    timing: Timing = field(default_factory=Timing)
    #: How long keys waited for a worker, in order: those of runs of another pace do so, too.
    turns_ns: tuple[int, ...] = ()
    #: Whose calls those of the Jobs that are asked about had to wait for: they run, too.
    company: tuple[str, ...] = ()
    cron_settings: tuple[CronSetting, ...] = ()
    lanes: bool = False  # whether the pods' lanes are wanted, to be drawn

    @property
    def raced(self) -> bool:
        """Whether by the new rules chance decides what Jobs come to, at any pace."""
        rules = JobRules.of(self.target)
        return rules.overwrites_status or rules.handlers.pod_failure_delays_sync

    @property
    def turn_ns(self) -> int:
        """How long a key may well wait: one in ten waited longer."""
        return self.turns_ns[9 * len(self.turns_ns) // 10] if self.turns_ns else 0

    def timing_of(self, seed: int) -> Timing:
        """The first run is as prompt as the rules are; each other has a pace of its own.

        Where the new rules have races every other run keeps to the prompt one, for how often races
        are lost was measured at that.
        """
        if self.raced and seed % 2 == 0:
            return self.timing
        factor = 2 * (seed * _SPREAD % 1)
        turns = tuple(int(turn_ns * factor) for turn_ns in self.turns_ns)
        return replace(self.timing, turns=turns if any(turns) else ())
