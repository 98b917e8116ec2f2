"""When the API server may have refused a key's writes, and what in the record says so."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate

from tracekit.base.kube.events import SPAM_BURST, SPAM_REFILL_NS
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobView
from tracekit.check.replay.history import History, Revision, WriteKind
from tracekit.check.replay.other_clocks import TELLING_NS
from tracekit.check.replay.reported_events import EVENT_LAG_NS, events_spent
from tracekit.check.replay.run_context import INFORMER_LAG_NS, RunContext
from tracekit.check.verdict import Assumption
from tracekit.versions.job import JobRules

#: Why an Event of a refusal may be missing that was handed out and not lost.
EVENTS_SPENT = f"the Job had spent the {SPAM_BURST} Events that it may have at once"
#: Why no Event tells of a webhook that may have refused writes.
EVENTS_WAITED = "the Events of that time had not been posted, those of this Job among them"
#: The same where none of the Job's own is missing: the weakest evidence, asked for last.
EVENTS_LATE = "the Events of that time came late, and had not all been posted"
#: A sync sets startTime before it creates pods: of one that began after them it was not the first.
BEGAN_ANEW = "startTime is later than pods of the Job: a status with an earlier one was lost"
#: Not found, and conflict: the record shows why a call was answered so.
_ANSWERED_ALIKE = (404, 409)


class Refusals:
    """What the record says of refused writes of one key.

    Each refused creation hands out an Event FailedCreate. One may be posted late, and the spam
    filter drops all but one in 300 s; between two refusals lies at most the key's longest back-off.
    Refused statuses and patches have no Event: an audit log names them.
    """

    def __init__(self, history: History, rules: JobRules, run_context: RunContext) -> None:
        self.history = history
        self.rules = rules
        self.run_context = run_context
        self._creations_ns = [
            (0 if event.type == "LIST" else event.recv_ns - EVENT_LAG_NS, event.recv_ns)
            for event in history.events
            if event.reason == "FailedCreate"
        ] + [
            (call.recv_ns - INFORMER_LAG_NS, call.recv_ns)
            for call in history.refused
            if call.stream == "pods" and call.verb == "create"
        ]
        self._writes_ns = [
            (call.recv_ns - INFORMER_LAG_NS, call.recv_ns)
            for call in history.refused
            if call.verb != "create" and call.code not in _ANSWERED_ALIKE
        ]
        self._spent_ns = list(events_spent(history))
        #: What may have been refused in times of which Events may be missing.
        self._unposted = [
            Assumption("refused-creations", lost.from_ns, lost.until_ns, lost.why)
            for lost in run_context.unposted
        ]
        self._within: dict[int, Assumption | None] = {}
        # What few keys are asked about is worked out when they are.
        self._times: tuple[list[int], list[int]] | None = None
        self._statuses_ns: list[int] | None = None
        self._unreported_ns: list[int] | None = None
        self._begun_anew_ns: list[tuple[int, int]] | None = None

    def creations(self, at_ns: int, until_ns: int = 0) -> Assumption | None:
        """Why creations may have been refused from then to `until_ns`; None if nothing says so."""
        if not self.run_context.events_recorded:
            end_ns = self.run_context.end_ns
            return Assumption("refused-creations", 0, end_ns, "Events were not recorded")
        last_ns = max(at_ns, until_ns)
        reported = self.reported_creations(at_ns, last_ns)
        if reported is not None:
            return reported
        for lost in self._unposted:
            if lost.from_ns <= last_ns and at_ns <= lost.until_ns:
                return lost
        return None

    def reported_creations(self, at_ns: int, until_ns: int) -> Assumption | None:
        """The same where an Event of the Job, or the audit log, tells of refused creations."""
        for from_ns, reported_ns in self._creations_ns:
            last_ns = self._until_ns(reported_ns)
            if from_ns <= until_ns and at_ns <= last_ns:
                why = "creations told as refused"
                return Assumption("refused-creations", from_ns, last_ns, why)
        return None

    def reported_between(self, since_ns: int, until_ns: int) -> bool:
        """Whether an Event that came then, or the audit log, tells of refused creations."""
        last_ns = until_ns + INFORMER_LAG_NS
        return any(since_ns <= reported_ns <= last_ns for _, reported_ns in self._creations_ns)

    def creations_within(self, index: int) -> Assumption | None:
        """The same of a sync whose first write this is: its calls go on to its status write."""
        if index not in self._within:
            self._within[index] = self.creations_or_unreported(*self._span(index))
        return self._within[index]

    def creations_or_unreported(self, at_ns: int, until_ns: int) -> Assumption | None:
        """The same also where the spam filter may have dropped the Events that would tell it."""
        return self.creations(at_ns, until_ns) or self.spent(at_ns, until_ns)

    def unreported_within(self, index: int) -> Assumption | None:
        """Why creations of that sync may have been refused without an Event, if nothing told more.

        The spam filter drops what a Job has to tell once it has told so much. Times need no such
        excuse: a sync that creates too little shows it.
        """
        span = self._span(index)
        return None if self.creations(*span) else self.spent(*span)

    def spent(self, at_ns: int, until_ns: int) -> Assumption | None:
        """When the spam filter may have dropped Events of the key's Jobs in that time."""
        for from_ns, end_ns in self._spent_ns:
            if from_ns <= until_ns and at_ns <= end_ns:
                return Assumption("refused-creations", from_ns, end_ns, EVENTS_SPENT)
        return None

    def writes(self, at_ns: int) -> Assumption | None:
        """Why writes other than creations may have been refused; None if nothing tells so.

        Without an audit log only refused creations and deletions are told of; a webhook or policy
        that is told to refuse these may be asked about the others, too. Where Events were still to
        be posted, so may those have been that tell of one.
        """
        for from_ns, reported_ns in self._writes_ns:
            if from_ns <= at_ns + INFORMER_LAG_NS and at_ns <= reported_ns + INFORMER_LAG_NS:
                evidence = "the audit log has refused writes"
                return Assumption("refused-writes", from_ns, reported_ns, evidence)
        refusing = self.run_context.refusing.get(self.history.namespace)
        if refusing is not None and at_ns <= (until_ns := self._until_ns(refusing.last_ns)):
            return Assumption("refused-writes", 0, until_ns, refusing.why)
        last_ns = self._status_after(at_ns)
        for lost in self.run_context.unposted:
            within = lost.from_ns <= at_ns <= lost.until_ns
            unreported = within and self._unreported_creation(lost.from_ns, at_ns)
            if unreported and not self.spent(lost.from_ns, at_ns):
                return Assumption("refused-writes", lost.from_ns, lost.until_ns, EVENTS_WAITED)
        for lost in self.run_context.unposted:
            if lost.behind and lost.from_ns <= last_ns and at_ns <= lost.until_ns:
                return Assumption("refused-writes", lost.from_ns, lost.until_ns, EVENTS_LATE)
        for from_ns, until_ns in self._begun_anew():
            if from_ns <= at_ns <= until_ns:
                return Assumption("refused-writes", from_ns, until_ns, BEGAN_ANEW)
        return None

    def next_ns(self, after_ns: int) -> int | None:
        """When, after that, creations may have been refused again; None if never."""
        begun = [from_ns for from_ns, _ in self._creations_ns]
        begun += [lost.from_ns for lost in self.run_context.unposted]
        return min((from_ns for from_ns in begun if from_ns > after_ns), default=None)

    def last_ns(self, before_ns: int) -> int | None:
        """When, before that, a sync may have been refused for the last time; None if never."""
        if self._times is None:
            self._times = self._refusing_times()
        begun, until_ns = self._times
        position = bisect_left(begun, before_ns)
        return min(until_ns[position - 1], before_ns) if position else None

    def _until_ns(self, reported_ns: int) -> int:
        """Until when what was reported then may have been refused again, and not tried since."""
        return reported_ns + SPAM_REFILL_NS + self.rules.retries.backoff_ns_max

    def _span(self, index: int) -> tuple[int, int]:
        """From that write to the next status, or to the last write: its sync was over by then."""
        writes = self.history.writes
        until = min(self.history.next_status(index), len(writes) - 1)
        return writes[index].recv_ns, max(writes[index].recv_ns, writes[until].recv_ns)

    def _refusing_times(self) -> tuple[list[int], list[int]]:
        """When times of refusals may have begun, and until when those that had lasted at most."""
        windows = [
            (from_ns, self._until_ns(reported_ns)) for from_ns, reported_ns in self._creations_ns
        ]
        windows += [(lost.from_ns, lost.until_ns) for lost in self._unposted]
        refusing = self.run_context.refusing.get(self.history.namespace)
        if refusing is not None:
            windows.append((0, self._until_ns(refusing.last_ns)))
        windows.sort()
        return [begun for begun, _ in windows], list(accumulate((end for _, end in windows), max))

    def _status_after(self, at_ns: int) -> int:
        """When the next status was written, or the record ended; one refused comes again."""
        if self._statuses_ns is None:
            writes = self.history.writes
            self._statuses_ns = [writes[index].recv_ns for index in self.history.status_indexes]
        position = bisect_right(self._statuses_ns, at_ns)
        known = position < len(self._statuses_ns)
        return self._statuses_ns[position] if known else self.run_context.end_ns

    def _begun_anew(self) -> list[tuple[int, int]]:
        """From pods of a Job to the status whose startTime is later: its first one was refused.

        No write of the Job lies between, so that it met no conflict. A Job that is resumed takes
        its startTime after its pods. A log that names who wrote would name what was refused as
        well. Upstream: syncJob in pkg/controller/job/job_controller.go.
        """
        if self._begun_anew_ns is None:
            writes = self.history.writes
            statuses = (writes[index].job for index in self.history.status_indexes)
            self._begun_anew_ns = [
                (created_ns, job.recv_ns)
                for job in statuses
                if job is not None and (created_ns := self._created_before_start(job)) is not None
            ]
        return self._begun_anew_ns

    def _created_before_start(self, job: Revision[JobView]) -> int | None:
        """When the first pod came that is older than the startTime which this status sets."""
        before, start_ns = job.previous, job.view.status.start_ns
        if before is None or start_ns is None or before.view.status.start_ns is not None:
            return None
        if job.actor is not None or job.view.status.condition("Suspended") is not None:
            return None
        older_ns = start_ns - self.run_context.servers_behind_ns - NS_PER_S - TELLING_NS
        return next(
            (
                pod.recv_ns
                for pod in self.history.pods[
                    self.history.pods_below(before.rv) : self.history.pods_below(job.rv)
                ]
                if pod.type == "ADDED"
                and pod.view.created_ns <= older_ns
                and (owner := pod.view.controller) is not None
                and owner.uid == job.view.uid
            ),
            None,
        )

    def _unreported_creation(self, from_ns: int, until_ns: int) -> bool:
        """Whether a pod was created in that time and no Event tells of it.

        A log that names who created it would name what was refused as well.
        """
        if self._unreported_ns is None:
            reported = {event.message for event in self.history.events}
            self._unreported_ns = sorted(
                write.recv_ns
                for write in self.history.writes
                if write.kind is WriteKind.POD_CREATE
                and write.actor is None
                and f"Created pod: {write.subject}" not in reported
            )
        return bisect_left(self._unreported_ns, from_ns) < bisect_right(
            self._unreported_ns, until_ns
        )
