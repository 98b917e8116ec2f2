"""What the runs of one question have in common."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from tracekit.eras.era import Era
from tracekit.eras.job import JobRules
from tracekit.process.manager import ManagerFlags
from tracekit.replay.run_context import RunContext
from tracekit.simulate.draws import Timing
from tracekit.whatif.changes import Setting
from tracekit.whatif.cron_changes import CronSetting

#: Multiples of it, without their whole part, lie evenly between 0 and 1 however few there are.
_SPREAD: Final = 0.618


@dataclass(frozen=True, slots=True)
class Plan:
    """What the runs of one question have in common."""

    recorded: Era
    target: Era
    run_context: RunContext
    flags: ManagerFlags
    target_flags: ManagerFlags
    settings: tuple[Setting, ...] = ()
    draws: int = 1
    timing: Timing = field(default_factory=Timing)
    #: How long a key may wait for a worker in runs of another pace than the record's.
    turn_ns: int = 0
    #: Whose calls those of the Jobs that are asked about had to wait for: they run, too.
    company: tuple[str, ...] = ()
    cron_settings: tuple[CronSetting, ...] = ()
    lanes: bool = False  # whether the pods' lanes are wanted, to be drawn
    #: Whether runs differ in their pace though the new rules have races, which slower runs win.
    at_any_pace: bool = False

    @property
    def raced(self) -> bool:
        """Whether by the new rules chance decides what Jobs come to, at any pace."""
        rules = JobRules.of(self.target)
        return rules.overwrites_status or rules.handlers.pod_failure_delays_sync

    @property
    def spread_ns(self) -> int:
        """By how much runs differ in their pace; races are lost as often as at the record's."""
        return self.turn_ns if self.at_any_pace or not self.raced else 0

    def timing_of(self, seed: int) -> Timing:
        """The first run is as prompt as the rules are; each other has a pace of its own."""
        most_ns = int(self.spread_ns * (seed * _SPREAD % 1))
        return replace(self.timing, turn=(0, most_ns)) if most_ns else self.timing
