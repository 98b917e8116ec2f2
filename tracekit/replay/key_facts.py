"""What the record says about one key beyond its rows: whose a write may be, when nobody looked."""

from __future__ import annotations

from tracekit.controllers.job.context import Choices
from tracekit.eras.job import JobRules
from tracekit.kube.timestamps import NS_PER_S
from tracekit.replay.history import History, Write, WriteKind
from tracekit.replay.run_context import RunContext

#: Clocks of the recorder and of the controller may differ by so much.
CLOCK_SLACK_NS = NS_PER_S
#: A lease is renewed every few seconds: the controller may have died so long before its last sign.
CUT_OFF_NS = 10 * NS_PER_S


class KeyFacts:
    """One key: its history, the rules and run_context it lived under, and what follows of them."""

    def __init__(self, history: History, rules: JobRules, run_context: RunContext) -> None:
        self.history = history
        self.rules = rules
        self.run_context = run_context
        self.failed_creates = any(event.reason == "FailedCreate" for event in history.events) or (
            any(call.stream == "pods" and call.verb == "create" for call in history.refused)
        )
        #: Ends of the times in the key's life that the record did not see.
        self.blind_until_ns = [
            *(revision.recv_ns for revision in history.listings()),
            *(gap.until_ns for gap in run_context.gaps if _lived_before(history, gap.until_ns)),
        ]
        self._deleted_by_event = {
            event.message.removeprefix("Deleted pod: ")
            for event in history.events
            if event.reason == "SuccessfulDelete"
        }
        self._messages = frozenset(
            condition.message
            for revision in history.jobs
            for condition in revision.view.status.conditions
        )
        self._choices: tuple[int, Choices] | None = None

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

    def owned_up(self, write: Write) -> bool:
        """Whether an Event of the controller says that it deleted this pod."""
        return write.pod is not None and write.pod.view.name in self._deleted_by_event

    # When nobody looked.

    def pods_listed(self, at_ns: int) -> int:
        """How many pod revisions precede the end of the last blind time."""
        end_ns = max(at for at in self.blind_until_ns if at <= at_ns)
        return sum(1 for revision in self.history.pods if revision.recv_ns <= end_ns)

    def why_uncertain(self, write: Write) -> str:
        """Why the controller's memory at this write is not known."""
        at_ns = max(at for at in self.blind_until_ns if at <= write.recv_ns)
        for gap in self.run_context.gaps:
            if gap.from_ns <= at_ns and gap.until_ns >= at_ns - CLOCK_SLACK_NS:
                return f"the first sync after a {gap.why} may have begun in it"
        return "the Job was there before the record began: its first sync may have begun earlier"

    def interrupted(self, at_ns: int) -> bool:
        """Whether the record or the controller may have ended right after a write at `at_ns`."""
        near_end = self.run_context.end_ns - at_ns < self.run_context.end_slack_ns
        return near_end or any(
            blind.from_ns - CUT_OFF_NS <= at_ns <= blind.until_ns
            for blind in self.run_context.interruptions
        )

    def died_between(self, last: Write, following: Write) -> bool:
        """Whether the controller may have died after one write and before another."""
        return any(
            blind.from_ns - CUT_OFF_NS <= last.recv_ns and following.recv_ns >= blind.until_ns
            for blind in self.run_context.interruptions
        )


def _lived_before(history: History, at_ns: int) -> bool:
    return bool(history.jobs) and history.jobs[0].recv_ns < at_ns
