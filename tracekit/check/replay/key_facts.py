"""What the record says about one key beyond its rows: whose a write may be, when nobody looked."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import takewhile

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobView
from tracekit.check.replay.blind_times import BlindTimes
from tracekit.check.replay.clock_readings import CLOCK_SLACK_NS, slack_ns
from tracekit.check.replay.handlers import PodHandlers
from tracekit.check.replay.history import DELETED_POD, History, Revision, Write, WriteKind
from tracekit.check.replay.interruptions import (
    CUT_OFF_NS,
    cut_off,
    follows,
    record_ends,
    restarts_near,
)
from tracekit.check.replay.recorded_api import Assumptions, RecordedApi
from tracekit.check.replay.refusals import Refusals
from tracekit.check.replay.reported_events import COMPONENT, job_counts
from tracekit.check.replay.run_context import INFORMER_LAG_NS, Outage, RunContext
from tracekit.check.replay.unsigned_writes import TIES, unsigned
from tracekit.check.verdict import Assumption, Reason
from tracekit.ports.job.context import Choices, SyncClock
from tracekit.versions.job import JobRules

#: A sync writes the status at most so often.
STATUS_WRITES_PER_SYNC = 3


class KeyEvidence:
    """One key: its history, the rules and run_context it lived under, and what follows of them."""

    def __init__(self, history: History, rules: JobRules, run_context: RunContext) -> None:
        self.history = history
        self.rules = rules
        self.run_context = run_context
        self.pod_handlers = PodHandlers(history, rules)
        self.refused = Refusals(history, rules, run_context)
        #: Ends of the times in the key's life that the record did not see.
        self.blind = BlindTimes(
            (revision.recv_ns for revision in history.listings()),
            run_context.gap_ends_ns,
            history.jobs[0].recv_ns if history.jobs else None,
        )
        #: By pod, when the controller's own Event of its deletion was told first.
        self._deleted_by_event = {
            event.message.removeprefix(DELETED_POD): event.first_ns
            for event in history.events
            if event.reason == "SuccessfulDelete"
        }
        #: Whether any deletion has an Event of the controller.
        self.any_owned_up = bool(self._deleted_by_event)
        self._job_counts = job_counts(history)
        self._messages = frozenset(
            condition.message
            for revision in history.jobs
            for condition in revision.view.status.conditions
        )
        #: The revisions of finished Jobs.
        self.ended = [job for job in history.jobs if job.view.status.finished is not None]
        self._newest_rv = history.jobs_rv[-1] if history.jobs_rv else 0
        #: How far the record got in the streams of all pods and Jobs.
        self._pods_rv = run_context.seen_rv.get("pods", self._newest_rv)
        self._jobs_rv = run_context.seen_rv.get("jobs", self._newest_rv)
        # What few keys are asked about is worked out when they are; not as `cached_property`, which
        # makes each look at the others slower.
        self._choices: tuple[int, Choices] | None = None
        self._counted: frozenset[str] | None = None

    def api(
        self,
        start: int,
        clock: SyncClock,
        earliest_ns: int,
        assume: Assumptions,
        skip: frozenset[int],
    ) -> RecordedApi:
        """The API server as a sync met it that began before the write `start`."""
        return RecordedApi(
            self.history,
            start,
            clock,
            earliest_ns,
            assume,
            skip,
            slack_ns(self.run_context, clock.now_ns),
            self.rules,
            self.run_context.namespaces_ending.get(self.history.namespace),
        )

    def choices(self, index: int) -> Choices:
        """What upstream leaves open, as the writes from `index` to the next status write chose."""
        known = self._choices
        if known is None or known[0] != index:
            picked = []
            writes = self.history.writes
            for position in range(index, len(writes)):
                write = writes[position]
                if write.kind is WriteKind.STATUS_UPDATE:
                    break
                if write.kind in (WriteKind.POD_DELETE, WriteKind.FINALIZER_REMOVAL):
                    picked.append(write.uid)
            known = (index, Choices(frozenset(picked), self._messages))
            self._choices = known
        return known[1]

    # Whose a write may be.

    def orphan_reason(self, write: Write) -> str | None:
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

    def may_be_foreign(self, write: Write) -> bool:
        """Whether a write that no sync explains may be somebody else's: anybody deletes pods.

        An Event of the controller that names the pod may come from a second, idle DELETE by a sync
        that had not seen the first; the judge looks for that sync.
        """
        return write.kind is WriteKind.POD_DELETE

    def namespace_ends(self, write: Write) -> bool:
        """Whether the namespace controller deletes what there is: its namespace was ending."""
        ending_rv = self.run_context.namespaces_ending.get(self.history.namespace)
        return ending_rv is not None and ending_rv <= write.rv

    def collected(self, write: Write) -> bool:
        """Whether this pod is deleted whoever else may do so: its Job is gone, or its namespace."""
        if self.namespace_ends(write):
            return True
        job = self.history.job_before(write.rv)
        if job is None:
            return False
        owner = write.pod.view.controller if write.pod is not None else None
        gone = job.type == "DELETED" or job.view.deleted_ns is not None
        return gone or (owner is not None and owner.uid != job.view.uid)  # another has its name

    def owned_up(self, write: Write) -> bool:
        """Whether an Event of the controller, or the audit log, says that it deleted this pod."""
        if write.actor is not None and write.actor.controller is not None:
            return write.actor.controller == COMPONENT
        return write.pod is not None and write.pod.view.name in self._deleted_by_event

    def released_by_nobody(self, write: Write) -> bool:
        """Whether nothing tells who took this pod's owner reference or finalizer off."""
        if write.pod is None or write.kind not in TIES:
            return False
        before = write.pod.previous
        runs = before is not None and before.view.active
        if write.kind is WriteKind.FINALIZER_REMOVAL and not runs and self._to_be_counted(write):
            return False  # nearly always the controller's
        return unsigned(self.history, write, self.rules) is not None

    def _to_be_counted(self, write: Write) -> bool:
        """Whether some status was about to count the pod."""
        if self._counted is None:
            statuses = [job.view.status for job in self.history.jobs]
            self._counted = frozenset(
                uid
                for status in statuses
                for uid in (*status.uncounted_succeeded, *status.uncounted_failed)
            )
        return write.uid in self._counted

    def released_within(self, index: int) -> bool:
        """Whether that is so of a pod amid the writes of a sync that writes this first.

        These go on after its status: it takes finalizers off then.
        """
        writes, status = self.history.writes, self.history.next_status(index)
        after = takewhile(lambda w: w.kind is WriteKind.FINALIZER_REMOVAL, writes[status + 1 :])
        return any(map(self.released_by_nobody, [*writes[index + 1 : status], *after]))

    def deleted_again(self, write: Write) -> bool:
        """Whether the controller's Event is of a later second: it may tell of a second DELETE.

        Or of the first, whose answer came then: whether a sync asked twice, the judge looks.
        """
        assert write.pod is not None  # noqa: S101 - pod writes have one
        pod = write.pod.view
        reported_ns = self._deleted_by_event.get(pod.name)
        if reported_ns is None or pod.deleted_ns is None:
            return False
        return reported_ns > pod.deleted_ns - pod.deletion_grace_s * NS_PER_S

    # How far the informers must have got.

    def pods_shown(self, at_ns: int) -> int:
        """How many pod revisions the informer had certainly shown at that time."""
        return bisect_right(self.history.pods_latest_ns, self.run_context.before_ns(at_ns))

    def jobs_shown(self, at_ns: int) -> int:
        """How many revisions of the Job the informer had certainly shown at that time."""
        return bisect_right(self.history.jobs_latest_ns, self.run_context.before_ns(at_ns))

    def inputs_shown_ns(self, job: Revision[JobView] | None, pods: int) -> int:
        """When the newest that a sync had seen was shown: not before was it in every cache."""
        pod_ns = self.history.pods[pods - 1].shown_ns if pods else 0
        return max(pod_ns, job.shown_ns if job is not None else 0)

    def job_reported(self, at_ns: int) -> int:
        """The position of the Job's revision that an earlier sync had held, as its Event tells."""
        known, farthest = self._job_counts
        reported = bisect_right(known, self.run_context.before_ns(at_ns))
        return farthest[reported - 1] if reported else 0

    def process_shown(self, stream: str, at_ns: int, began_ns: int = 0) -> int:
        """The revision that other keys' syncs show to be in the cache, if it had come long ago.

        A sync that had not begun before `began_ns` had seen what they had by then.
        """
        shown = self.run_context.shown
        if shown is None:
            return 0
        of_pods = stream == "pods"
        old = self.pods_shown(at_ns) if of_pods else self.jobs_shown(at_ns)
        rvs = self.history.pods_rv if of_pods else self.history.jobs_rv
        return min(old, bisect_right(rvs, shown.rv(stream, at_ns, began_ns)))

    # When nobody looked.

    def unseen_writes(self, at_ns: int) -> Assumption | None:
        """When a sync of that time may have written to pods unseen; None if it was seen.

        In a gap; or at the end of the record, where the pods' stream had not come as far as others.
        """
        gap = self.run_context.gap_near(at_ns, CUT_OFF_NS, "pods")
        if gap is not None:
            return Assumption("unseen-writes", gap.from_ns, gap.until_ns, gap.why)
        end_ns, seen_ns = self.run_context.end_ns, self.run_context.seen_until_ns("pods")
        if at_ns < seen_ns - INFORMER_LAG_NS or self._newest_rv <= self._pods_rv:
            return None
        why = f"the record ends with resourceVersion {self._pods_rv} of the pods"
        return Assumption("unseen-writes", at_ns, end_ns, why)

    def unseen_status(self, at_ns: int) -> Assumption | None:
        """When a sync of that time may have written a status unseen: others' stream was ahead."""
        gap = self.run_context.gap_near(at_ns, INFORMER_LAG_NS, "jobs")
        if gap is not None:
            return Assumption("unseen-writes", gap.from_ns, gap.until_ns, gap.why)
        end_ns, pods_rv = self.run_context.end_ns, self.history.pods_rv
        seen_ns = self.run_context.seen_until_ns("jobs")
        if at_ns < seen_ns - INFORMER_LAG_NS or not pods_rv or pods_rv[-1] <= self._jobs_rv:
            return None
        why = f"the record ends with resourceVersion {self._jobs_rv} of the Jobs"
        return Assumption("unseen-writes", at_ns, end_ns, why)

    def unseen_inputs(self, write: Write) -> str | None:
        """Why a sync may have seen what the record does not show: it ends with a late stream."""
        for stream, last_rv in (("pods", self._pods_rv), ("jobs", self._jobs_rv)):
            late = self.run_context.seen_until_ns(stream) < self.run_context.end_ns
            if late and write.rv > last_rv:
                return f"the record ends with resourceVersion {last_rv} of the {stream}, shown late"
        return None

    def unseen_after(self, at_ns: int) -> int:
        """The revision beyond which writes to pods may not have been seen at such a time."""
        near = self.run_context.gap_near(at_ns, CUT_OFF_NS, "pods")
        return self._pods_rv if near is None else 0

    def pods_listed(self, at_ns: int) -> int:
        """How many pod revisions precede the end of the last blind time."""
        end_ns = self.blind.of(at_ns)
        return sum(1 for revision in self.history.pods if revision.recv_ns <= end_ns)

    def may_have_failed(self, at_ns: int) -> bool:
        """Whether pods of the Job may have failed by the end of a blind time.

        A failure that its policy ignores is in no status, and its pod may be gone.
        """
        uncounted = self.rules.ignored_failures_delay
        return any(
            job.recv_ns <= at_ns
            and (
                job.view.status.failed
                or job.view.status.uncounted_failed
                or (uncounted and job.view.spec.ignores_failures)
            )
            for job in self.history.jobs
        ) or any(
            pod.recv_ns <= at_ns and (pod.view.phase == "Failed" or pod.view.deleted_ns is not None)
            for pod in self.history.pods
        )

    def why_uncertain(self, write: Write) -> tuple[Reason, str]:
        """Why the controller's memory at this write is not known."""
        at_ns = self.blind.of(write.recv_ns)
        for gap in self.run_context.gaps_touching(at_ns - CLOCK_SLACK_NS, at_ns):
            return Reason.GAP, f"the first sync after a {gap.why} may have begun in it"
        return (
            Reason.BEFORE_RECORD,
            "the Job was there before the record began: its first sync may have begun earlier",
        )

    def began_unseen(self, write: Write) -> bool:
        """Whether the sync that wrote this may have begun while the record could not see the key.

        Such a sync is about a Job that was there by the end of that time, and writes a status a few
        times at most.
        """
        end_ns = self.blind.of(write.recv_ns)
        job = self.history.job_before(write.rv)
        if job is not None and all(
            known.recv_ns > end_ns for known in self.history.jobs if known.view.uid == job.view.uid
        ):
            return False
        since = (w for w in self.history.writes[: write.index] if w.recv_ns > end_ns)
        own = sum(w.kind is WriteKind.STATUS_UPDATE for w in since)
        return own < STATUS_WRITES_PER_SYNC

    def why_job_unseen(self, write: Write) -> tuple[Reason, str] | None:
        """Why the record has no revision of the Job that a pod was written for; None if it must.

        Streams come side by side: one may be interrupted, or end, just before the Job shows in it.
        """
        owner = write.pod.view.controller if write.pod is not None else None
        if owner is None:
            return None
        first = next((job for job in self.history.jobs if job.view.uid == owner.uid), None)
        if first is None:
            behind = self._jobs_rv < write.rv
            near = write.recv_ns >= self.run_context.seen_until_ns("jobs") - INFORMER_LAG_NS
            why = (
                f"the record ends with resourceVersion {self._jobs_rv} of the Jobs, before its Job"
            )
            return (Reason.CENSORED, why) if behind and near else None
        if first.type != "LIST" or first.rv <= write.rv:
            return None
        reason = Reason.GAP if self.run_context.gaps else Reason.BEFORE_RECORD
        return reason, f"the Job was first listed at resourceVersion {first.rv}, after this write"

    def last_syncs(self, index: int) -> bool:
        """Whether the writes from `index` on may be of one sync, which the record's end cut off."""
        if (self.history.namespace, self.history.name) in self.run_context.went_on:
            return False
        left = self.history.status_writes(index, len(self.history.writes))
        return left <= STATUS_WRITES_PER_SYNC

    def ending(self, at_ns: int) -> Assumption:
        """What may have ended a sync after a write at `at_ns`."""
        return cut_off(self.run_context, at_ns) or record_ends(self.run_context, at_ns)

    def interrupted(self, write: Write) -> bool:
        """Whether the watch or the controller may have ended within the sync that wrote this."""
        return any(self._cuts(outage, write) for outage in self._may_cut(write))

    def _may_cut(self, write: Write) -> Iterator[Outage]:
        """Interruptions near a write and what may be of its sync: no other can have ended that."""
        if not self.run_context.interruptions:
            return
        rest = self.history.writes[write.index : self.history.next_status(write.index)]
        last_ns = max((later.recv_ns for later in rest), default=write.recv_ns)
        since_ns, until_ns = write.recv_ns - INFORMER_LAG_NS, max(last_ns, write.recv_ns)
        yield from self.run_context.interruptions_near(since_ns, until_ns + CUT_OFF_NS)

    def _cuts(self, outage: Outage, write: Write) -> bool:
        """Whether an interruption may have ended the sync whose first write this is.

        With few tokens a sync makes its calls for long; its last one before the end is near that.
        """
        if follows(write, outage):
            return False
        last = write
        for later in self.history.writes[write.index : self.history.next_status(write.index)]:
            if follows(later, outage):
                break
            last = later
        return outage.from_ns - CUT_OFF_NS <= last.recv_ns

    def ends_within(self, write: Write) -> Iterator[int]:
        """Indexes before which what the record shows of a sync must have ended, if it was cut off.

        A new process has made what came after its predecessor's death; of a sync with a gap in its
        midst only the part before it is asked for.
        """
        writes = self.history.writes
        found: dict[int, None] = {}
        for outage in self._may_cut(write):
            if self._cuts(outage, write):
                rest = writes[write.index :]
                following = (later.index for later in rest if follows(later, outage))
                found[next(following, len(writes))] = None
        found[len(writes)] = None
        yield from found

    def died_between(self, last: Write, following: Write) -> bool:
        """Whether the controller may have died after one write and before another."""
        return any(
            blind.from_ns - CUT_OFF_NS <= last.recv_ns
            and not follows(last, blind)
            and follows(following, blind)
            for blind in self.run_context.interruptions_near(
                last.recv_ns - INFORMER_LAG_NS, last.recv_ns + CUT_OFF_NS
            )
        )

    def outlived(self, first: Write, last: Write) -> bool:
        """Whether one process would have made both of these: a lease between says of another."""
        return any(
            first.rv < restart.until_rv < last.rv
            and follows(last, restart)
            and not follows(first, restart)
            for restart in restarts_near(self.run_context, first.recv_ns, last.recv_ns)
        )
