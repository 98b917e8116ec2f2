"""From the walk over one key to its judgements.

Upstream rules decide what must happen (`tracekit.controllers`), the walk finds the cuts
(`tracekit.replay.observed`); here each action gets its verdict and its why.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tracekit.cache.pods import PodCache
from tracekit.controllers.job.context import SyncClock
from tracekit.controllers.job.memory import JobMemory
from tracekit.controllers.job.sync import sync_job
from tracekit.diff.events import ENDING_REASONS, FAILURES, explain_events, job_uid_of
from tracekit.diff.foreign import deletion_evidence, foreign_writes
from tracekit.diff.pod_body import FieldDifference, body_additions
from tracekit.diff.retry_timing import early_retries
from tracekit.diff.timing import Delay, delays_of, early_syncs
from tracekit.diff.verdict import Judgement, ObjectRef, Verdict
from tracekit.diff.why import describe, describe_cut, why_explained
from tracekit.eras.job import JobRules
from tracekit.kube.decode import as_map
from tracekit.kube.timestamps import NS_PER_S
from tracekit.kube.views import JobView
from tracekit.replay.history import EventRow, History, Revision, Write, WriteKind
from tracekit.replay.observed import (
    CLOCK_SLACK_NS,
    Explanation,
    KeyReplay,
    KeyWalker,
    Surroundings,
)
from tracekit.replay.observed_api import ObservedApi, Problem

CONTROLLER = "job"
#: So many pods of one template tell which of them is the odd one.
_FEWEST_ALIKE = 3
#: How long a sync may go on with a Job that is not the newest any more.
STALE_JOB_NS = 2 * NS_PER_S


@dataclass(frozen=True, slots=True)
class KeyJudgement:
    """One key, replayed and judged."""

    replay: KeyReplay
    judgements: tuple[Judgement, ...]
    delays: tuple[Delay, ...]


def judge_key(history: History, rules: JobRules, surroundings: Surroundings) -> KeyJudgement:
    """Replay one key under the observed schedule and judge every action."""
    walker = KeyWalker(history, rules, surroundings, lambda: foreign_writes(history, rules))
    replay = walker.run()
    judge = _Judge(history, rules, surroundings, walker, replay)
    judgements = [
        *(judge.foreign(history.writes[index], why) for index, why in walker.foreign.items()),
        *judge.syncs(),
        *judge.orphan_removals(),
        *judge.foreign_deletions(),
        *judge.unknowable(),
        *judge.events(),
        *judge.owed(),
    ]
    judgements.sort(key=lambda j: (j.time_ns, j.resource_version, j.action, j.subject))
    delays = delays_of(history, replay.syncs, rules, surroundings)
    return KeyJudgement(replay, tuple(judgements), tuple(delays))


class _Judge:
    def __init__(
        self,
        history: History,
        rules: JobRules,
        surroundings: Surroundings,
        walker: KeyWalker,
        replay: KeyReplay,
    ) -> None:
        self.history = history
        self.rules = rules
        self.surroundings = surroundings
        self.walker = walker
        self.replay = replay

    # Judgements.

    def foreign(self, write: Write, why: str) -> Judgement:
        return self._judgement(write, Verdict.FOREIGN, why)

    def foreign_deletions(self) -> Iterator[Judgement]:
        """Deletions that no rule asks for: others', unless an Event of the controller owns up."""
        told = {e.message for e in self.history.events if e.reason == "SuccessfulDelete"}
        explained = {
            event.message
            for sync in self.replay.syncs
            for event in sync.events
            if event.reason == "SuccessfulDelete"
        }
        for write, _ in self.replay.foreign:
            assert write.pod is not None  # noqa: S101 - pod writes have one
            message = f"Deleted pod: {write.pod.view.name}"
            if message in told - explained:
                why = (
                    "the controller's Event SuccessfulDelete names the pod, and no cut makes a "
                    "sync delete it"
                )
                yield self._judgement(write, Verdict.EXTRA, why)
            else:
                yield self.foreign(write, deletion_evidence(self.history, write))

    def unknowable(self) -> Iterator[Judgement]:
        for write in self.history.writes:
            if write.hidden:
                why = f"only its result was listed: {self._gap_before(write)}"
                yield self._judgement(write, Verdict.UNKNOWABLE, why)
        for write, why in self.replay.unknowable:
            yield self._judgement(write, Verdict.UNKNOWABLE, why)

    def _gap_before(self, write: Write) -> str:
        for gap in self.surroundings.gaps:
            if gap.from_ns <= write.recv_ns and write.recv_ns - gap.until_ns < CLOCK_SLACK_NS:
                return gap.why
        return "the watch was begun again"

    def orphan_removals(self) -> Iterator[Judgement]:
        for write, why in self.replay.orphan_removals:
            yield self._judgement(
                write, Verdict.MATCH, f"the orphan worker takes the finalizer off: {why}"
            )

    def syncs(self) -> Iterator[Judgement]:
        early = {
            sync.writes[0].index: waited_ns
            for sync, waited_ns in early_syncs(
                self.history, self.replay.syncs, self.rules, self.surroundings
            )
        }
        hasty = {
            sync.writes[0].index: wait_ns
            for sync, wait_ns in early_retries(self.history, self.replay.syncs, self.rules)
        }
        odd = self._odd_bodies()
        for sync in self.replay.syncs:
            bad = {p.write.index: p for p in sync.problems if p.write is not None}
            for write in sync.writes:
                problem = bad.pop(write.index, None)
                if problem is not None:
                    yield self._divergence(sync, problem)
                elif write.index in odd:
                    why = "the API server added other things to it than to the Job's other pods"
                    yield self._judgement(
                        write, Verdict.DIFFERENT, why, fields=tuple(odd[write.index])
                    )
                elif write.index in early:
                    yield self._judgement(
                        write,
                        Verdict.EARLY,
                        f"{early[write.index] / NS_PER_S:.3f} s after the first change that this "
                        f"sync could follow; syncs wait {self.rules.sync_batch_ns / NS_PER_S:g} s",
                    )
                elif write.index in hasty:
                    yield self._judgement(
                        write,
                        Verdict.EARLY,
                        "a failed pod is acted upon, and nothing but its back-off of "
                        f"{hasty[write.index] / NS_PER_S:g} s can have woken the Job by then",
                    )
                elif sync.pods_unseen:
                    yield self._judgement(
                        write,
                        Verdict.MATCH_LAGGED,
                        why_explained(sync, write.kind),
                        lag_observations=sync.pods_unseen,
                        lag_ns=sync.lag_ns,
                    )
                else:
                    yield self._judgement(write, Verdict.MATCH, why_explained(sync, write.kind))
            for problem in sync.problems:
                if problem.write is None or problem.write.index in bad:
                    yield self._divergence(sync, problem)

    def _divergence(self, sync: Explanation, problem: Problem) -> Judgement:
        rules = describe(sync.notes, problem.kind)
        why = (
            f"expected {problem.what}"
            + (f" ({'; '.join(rules)})" if rules else "")
            + f"; nearest cut tried: {describe_cut(sync)}"
        )
        if problem.kind is WriteKind.FINALIZER_REMOVAL and problem.verdict == "extra":
            why += "; a watch does not tell who removes a finalizer: it may be another's work"
        verdict = Verdict(problem.verdict)
        if problem.write is not None:
            return self._judgement(problem.write, verdict, why, fields=problem.fields)
        return Judgement(
            CONTROLLER,
            self._object(""),
            problem.kind.value,
            verdict,
            sync.writes[0].recv_ns,
            str(sync.writes[0].rv),
            problem.what,
            why,
            problem.fields,
        )

    def _odd_bodies(self) -> dict[int, list[FieldDifference]]:
        """Pods that differ from all others of their template in what the API server added.

        One pod that stands alone among three and more is told; a change that stays is an
        administrator's.
        """
        by_template: dict[int, list[tuple[int, dict[str, Any]]]] = {}
        for sync in self.replay.syncs:
            if sync.job is None:
                continue
            template = sync.job.view.spec.template
            spec = as_map(template.get("spec"))
            for write in sync.writes:
                if write.kind is WriteKind.POD_CREATE and write.pod is not None:
                    added = body_additions(spec, write.pod.evidence.pod_spec())
                    by_template.setdefault(id(template), []).append((write.index, added))
        odd: dict[int, list[FieldDifference]] = {}
        for pods in by_template.values():
            if len(pods) < _FEWEST_ALIKE:
                continue
            usual = pods[0][1] if pods[0][1] in (pods[1][1], pods[2][1]) else pods[1][1]
            different = [(index, added) for index, added in pods if added != usual]
            if len(different) == 1:
                index, added = different[0]
                odd[index] = [
                    FieldDifference(path, usual.get(path), added.get(path))
                    for path in sorted({*usual, *added})
                    if usual.get(path) != added.get(path)
                ]
        return odd

    def events(self) -> Iterator[Judgement]:
        for row, explained in explain_events(
            self.replay,
            self._lone_event,
            restarted_ns=[blind.until_ns for blind in self.surroundings.restarts],
            overwrites_status=self.rules.overwrites_status,
        ):
            if explained:
                verdict, why = Verdict.MATCH, "a sync that is explained hands out this Event"
            elif self._of_unseen_sync(row):
                verdict = Verdict.UNKNOWABLE
                why = (
                    f"it belongs to a sync of the Job at resourceVersion {row.involved_rv}, which "
                    "the record could not see"
                )
            else:
                verdict = Verdict.EXTRA
                why = f"no sync hands out an Event {row.reason} with this message by then"
            yield Judgement(
                CONTROLLER,
                ObjectRef(
                    "Job", self.history.namespace, self.history.name, job_uid_of(self.history, row)
                ),
                "event",
                verdict,
                row.recv_ns,
                str(row.rv),
                f"{row.reason}: {row.message}",
                why,
            )

    def _of_unseen_sync(self, row: EventRow) -> bool:
        """Whether the sync that emitted the Event may lie in a time that was not seen."""
        if not any(job.view.uid == row.involved_uid for job in self.history.jobs):
            return True
        if not self.walker.was_blind:
            return False
        return row.involved_rv not in self.history.jobs_rv or any(
            row.involved_rv <= job.rv and job.view.uid == row.involved_uid
            for job in self.history.listings()
        )

    def _lone_event(self, row: EventRow) -> bool:
        """Whether a sync on the revision that the Event names could have emitted it."""
        for job in self.history.jobs:
            if job.type == "DELETED" or not self._may_be_of(job, row):
                continue
            seen = sum(1 for revision in self.history.pods if revision.recv_ns <= row.recv_ns)
            for cut in range(seen, max(0, seen - 50) - 1, -1):
                cache = PodCache()
                cache.move_to(self.history.pods, cut)
                clock = SyncClock(row.recv_ns | 1)
                api = self._api_after_the_end(clock, refusals=row.reason == "FailedCreate")
                sync_job(
                    job.view,
                    cache.pods(),
                    JobMemory(),
                    api,
                    clock=clock,
                    rules=self.rules,
                    choices=self.walker.choices(
                        len(self.history.writes), retries_unseen=job.view.spec.backoff_limit
                    ),
                )
                if row.reason == "FailedCreate" and api.refused:
                    return True
                if row.reason in ENDING_REASONS and api.problems:
                    continue  # such a sync would have written something that shows
                told = {(event.reason, event.message) for event in api.events}
                if row.reason == "SuccessfulDelete" and not any(r in FAILURES for r, _ in told):
                    continue  # expectations hold any other deletion back until it shows
                if (row.reason, row.message) in told:
                    return True
        return False

    def _may_be_of(self, job: Revision[JobView], row: EventRow) -> bool:
        """Whether a lone Event may come from a sync of this revision.

        The repetition of an ending comes from a sync of a Job that was out of date for a moment; a
        merged Event goes on naming the revision of the first one.
        """
        if row.reason not in ENDING_REASONS:
            return job.rv == row.involved_rv
        newer = self.history.jobs[job.position + 1 : job.position + 2]
        return job.recv_ns <= row.recv_ns and all(
            row.recv_ns <= revision.recv_ns + STALE_JOB_NS for revision in newer
        )

    def owed(self) -> Iterator[Judgement]:
        """Actions that the rules demand of the last state, long before the record ends."""
        state = self.replay.final
        last = self.history.jobs[-1] if self.history.jobs else None
        if state is None or last is None:
            return
        yield from self._owed_by_the_orphan_worker(last)
        if last.type == "DELETED":
            return
        cache = state.cache.copy()
        cache.move_to(self.history.pods, len(self.history.pods))
        memory = self.walker.memory_at(state, len(self.history.pods), last.view.uid)
        end_ns = self.surroundings.end_ns - self.surroundings.end_slack_ns
        inputs = [last.recv_ns, *(r.recv_ns for r in self.history.pods)]
        inputs += [r.until_ns for r in self.surroundings.restarts]
        if max(inputs) > end_ns or self.walker.failed_creates:
            return
        clock = SyncClock(end_ns | 1)
        api = self._api_after_the_end(clock)
        sync_job(
            last.view,
            cache.pods(),
            memory,
            api,
            clock=clock,
            rules=self.rules,
            choices=self.walker.choices(len(self.history.writes)),
        )
        waited_s = (self.surroundings.end_ns - max(inputs)) / NS_PER_S
        for problem in api.problems:
            yield Judgement(
                CONTROLLER,
                self._object(last.view.uid),
                problem.kind.value,
                Verdict.MISSING,
                self.surroundings.end_ns,
                str(last.rv),
                problem.what,
                f"expected {problem.what}: the rules demand it of the last state seen (Job at "
                f"resourceVersion {last.rv}), and the record goes on for {waited_s:.0f} s "
                "without it",
            )

    def _owed_by_the_orphan_worker(self, job: Revision[JobView]) -> Iterator[Judgement]:
        """Finalizers that stay on the pods of a Job that is gone or has finished."""
        over = job.type == "DELETED" or job.view.status.finished is not None
        if not over or not self.rules.batches_job_updates or self.rules.managed_elsewhere(job.view):
            return
        end_ns = self.surroundings.end_ns - self.surroundings.end_slack_ns
        quiet_ns = [job.recv_ns, *(blind.until_ns for blind in self.surroundings.restarts)]
        cache = PodCache()
        cache.move_to(self.history.pods, len(self.history.pods))
        changed_ns = {r.view.uid: r.recv_ns for r in self.history.pods}
        uids = {revision.view.uid for revision in self.history.jobs}
        once_owned = {
            r.view.uid
            for r in self.history.pods
            if r.view.controller and r.view.controller.uid in uids
        }
        for pod in cache.pods():
            released = pod.controller is None and pod.uid in once_owned
            owned = pod.controller is not None and pod.controller.uid in uids
            if not (owned or released) or not pod.has_tracking_finalizer:
                continue
            if max([changed_ns[pod.uid], *quiet_ns]) > end_ns:
                continue
            what = f"the tracking finalizer of pod {pod.name} to go"
            yield Judgement(
                CONTROLLER,
                self._object(job.view.uid),
                WriteKind.FINALIZER_REMOVAL.value,
                Verdict.MISSING,
                self.surroundings.end_ns,
                str(pod.rv),
                pod.name,
                f"expected {what}: its Job is over (resourceVersion {job.rv}), and the orphan "
                "worker takes it off",
            )

    # Helpers.

    def _api_after_the_end(self, clock: SyncClock, *, refusals: bool = False) -> ObservedApi:
        return ObservedApi(
            self.history,
            len(self.history.writes),
            clock,
            0,
            cuts_off=False,
            refusals=refusals,
            lenient=True,
            skip=frozenset(),
            slack_ns=CLOCK_SLACK_NS,
            rules=self.rules,
            namespace_ends_rv=self.surroundings.namespaces_ending.get(self.history.namespace),
        )

    def _object(self, uid: str) -> ObjectRef:
        if not uid and self.history.jobs:
            uid = self.history.jobs[-1].view.uid
        return ObjectRef("Job", self.history.namespace, self.history.name, uid)

    def _judgement(self, write: Write, verdict: Verdict, why: str, **more: object) -> Judgement:
        if write.kind is WriteKind.STATUS_UPDATE:
            uid, subject = write.uid, "status"
        else:
            assert write.pod is not None  # noqa: S101 - pod writes have one
            pod = write.pod.view
            before = write.pod.previous.view if write.pod.previous is not None else pod
            owner = pod.controller or before.controller
            uid, subject = owner.uid if owner is not None else "", pod.name
        return Judgement(
            CONTROLLER,
            self._object(uid),
            write.kind.value,
            verdict,
            write.recv_ns,
            str(write.rv),
            subject,
            why,
            **more,  # type: ignore[arg-type]
        )
