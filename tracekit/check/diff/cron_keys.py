"""The CronJobs of a trace, one name after the other, and what a search found of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tracekit.base.kube.cronjob_views import CronJobView
from tracekit.check.replay.cron_feed import cron_events_of, cron_jobs_of
from tracekit.check.replay.cron_history import CronHistories, CronHistory
from tracekit.check.replay.cron_runner import CronRunner
from tracekit.check.replay.cron_search import CronEntry, CronExplanation
from tracekit.check.replay.feed import RowGroup
from tracekit.check.replay.history import EventRow, History, Revision, Write, written_in_time
from tracekit.check.replay.run_context import RunContext
from tracekit.check.replay.search_state import WithoutSync, WriteWithoutSync


@dataclass(slots=True)
class CronJobKeys:
    """Takes the rows of a trace, namespace by namespace, and has a look at each CronJob's name."""

    runner: CronRunner
    context: RunContext
    _namespace: str | None = field(default=None, init=False)
    _collected: CronHistories = field(default_factory=CronHistories, init=False)

    def key(self, history: CronHistory) -> None:
        """What is done with a name once everything about it was taken in."""
        raise NotImplementedError

    def passing(self, groups: Iterable[RowGroup]) -> Iterator[RowGroup]:
        """The groups of a trace, after what of them belongs to CronJobs was taken in."""
        for group in groups:
            if group.namespace is not None and group.job is None:
                self.cron_jobs(group.namespace, cron_jobs_of(group), cron_events_of(group))
            yield group
        self.enter(None)

    def cron_jobs(
        self,
        namespace: str,
        revisions: Iterable[Revision[CronJobView]],
        events: Iterable[tuple[str, EventRow]],
    ) -> None:
        """Take in the CronJobs of a namespace and the Events about them, each with its name."""
        self.enter(namespace)
        found = list(revisions)
        written_in_time(found, self.context.written_ns)
        self._collected.cron_jobs(found)
        self._collected.events(namespace, events)

    def job(self, history: History) -> None:
        """Take in the Jobs of one name."""
        self.enter(history.namespace)
        self._collected.job(history)

    def enter(self, namespace: str | None) -> None:
        """Go on with another namespace, or, with None, come to the end."""
        if namespace == self._namespace:
            return
        for history in self._collected.take():
            self.key(history)
        self._namespace, self._collected = namespace, CronHistories()


class CronReplay(NamedTuple):
    """One CronJob's name with what became of each of its writes."""

    history: CronHistory
    entries: Sequence[CronEntry]
    foreign: Mapping[int, str]  # who else wrote, by index of the write

    @property
    def syncs(self) -> list[CronExplanation]:
        """The syncs that explain writes, in their order."""
        return [entry for entry in self.entries if isinstance(entry, CronExplanation)]

    def of_others(self) -> Iterator[Write]:
        """The writes that somebody else made."""
        for index in self.foreign:
            yield self.history.writes[index]
        for entry in self.entries:
            if isinstance(entry, WriteWithoutSync) and entry.reason is WithoutSync.FOREIGN:
                yield entry.write
