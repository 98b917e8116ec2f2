"""From the walk over one key to its judgements.

Upstream rules decide what must happen (`tracekit.ports`), the walk finds the cuts
(`tracekit.check.replay.search`); here each action gets its verdict and its why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.diff.event_only_syncs import LoneEvents, why_unseen
from tracekit.check.diff.events import EventSource, explain_events
from tracekit.check.diff.job_verdicts import CONTROLLER, judge_missing, judge_write, object_of
from tracekit.check.diff.key_queue import (
    as_woken,
    deadline_lost,
    due,
    early_candidates,
    ended_by_its_timer,
    first_wake_ns,
    first_write,
    read_clock_ns,
    reads_before,
    since_its_timer,
)
from tracekit.check.diff.lateness import (
    CALL_LATENCY_NS,
    Behind,
    KeyTiming,
    Seen,
    Service,
    left_open,
    shown_in,
)
from tracekit.check.diff.other_writers import (
    deletion_evidence,
    met_gone,
    named_writes,
    other_writers,
    signed_statuses,
)
from tracekit.check.diff.outlier_bodies import odd_bodies
from tracekit.check.diff.pending_actions import pending
from tracekit.check.diff.two_clocks import BackoffClocks
from tracekit.check.diff.unseen_retries import counted_otherwise, due_with_unseen
from tracekit.check.diff.why import describe, describe_cut, whys_explained
from tracekit.check.replay.clock_readings import CLOCK_SLACK_NS
from tracekit.check.replay.explanations import CutSearch
from tracekit.check.replay.history import DELETED_POD, EventRow, History, Write, WriteKind
from tracekit.check.replay.key_facts import KeyEvidence
from tracekit.check.replay.recorded_api import Problem
from tracekit.check.replay.refusals import EVENTS_LATE, EVENTS_SPENT, EVENTS_WAITED
from tracekit.check.replay.reported_events import COMPONENT
from tracekit.check.replay.run_context import INFORMER_LAG_NS, RunContext
from tracekit.check.replay.search import KeyWalker
from tracekit.check.replay.search_state import Explanation, KeyReplay, WithoutSync
from tracekit.check.replay.unsigned_writes import TIES
from tracekit.check.verdict import Judgement, Reason, Verdict
from tracekit.ports.job.context import Note
from tracekit.versions.job import JobRules

#: Writes of which the record may not tell whether the rules asked for them.
_OF_PODS = frozenset({WriteKind.POD_CREATE, WriteKind.POD_DELETE})
#: No key is late that was served so soon after its sync was due (`lateness.Process.proof`).
_AT_ONCE_NS = CALL_LATENCY_NS + min(CLOCK_SLACK_NS, INFORMER_LAG_NS)
_END_UNSEEN = "the Job had ended: only a cache that had not shown it yet leads to this"
_NOBODY_TOLD = "no Event and no audit log tells who asked for it: another may have, just then"


class KeyJudgement(Struct, frozen=True):
    """One key, replayed and judged."""

    replay: KeyReplay
    judgements: tuple[Judgement, ...]
    timing: KeyTiming


def judge_key(history: History, rules: JobRules, run_context: RunContext) -> KeyJudgement:
    """Replay one key under the observed schedule and judge every action."""
    facts = KeyEvidence(history, rules, run_context)
    writes = history.writes
    named = {**met_gone(history), **signed_statuses(writes), **named_writes(writes)}
    walker = KeyWalker(facts, lambda: other_writers(history, rules), named)
    replay = walker.run()
    may_tell = _lone_events(facts, walker.search, replay)
    asked = list(_as_asked_for(walker.search, replay))
    judgements = [
        *(
            judge_write(history, history.writes[index], Verdict.FOREIGN, why)
            for index, why in walker.foreign.items()
        ),
        *_syncs(facts, replay, asked),
        *_orphan_removals(replay),
        *_foreign_deletions(facts, may_tell, replay),
        *_unknowable(facts, replay),
        *_events(facts, may_tell, replay),
    ]
    clocks = BackoffClocks(facts)
    judgements = clocks.as_far_as_known(judgements)
    judgements.sort(key=lambda j: (j.time_ns, j.resource_version, j.action, j.subject))
    calls_ns = [write.called_ns for sync in replay.syncs for write in sync.writes]
    serial_ns = tuple(unsynced.write.called_ns for unsynced in replay.of(WithoutSync.ORPHAN_WORKER))
    calls_ns += serial_ns
    # What nobody is known to have written may be its own: the process was not idle then.
    calls_ns += [unsynced.write.called_ns for unsynced in replay.of(WithoutSync.UNKNOWABLE)]
    calls_ns += [event.recv_ns for event in history.events if event.component == COMPONENT]
    return KeyJudgement(
        replay,
        tuple(judgements),
        KeyTiming(
            tuple(_services(walker.search, replay, asked)),
            tuple(calls_ns),
            (
                *early_candidates(walker.search, replay.syncs),
                *counted_otherwise(walker.search, replay.syncs),
            ),
            tuple(pending(facts, walker.search, replay)),
            tuple(_seen(history, replay)),
            tuple(_behind(facts, replay)),
            serial_ns,
            tuple(clocks.hanging(asked)),
        ),
    )


def _as_asked_for(search: CutSearch, replay: KeyReplay) -> Iterator[Explanation]:
    """The syncs, each as what asked for it first; those that nothing explains as they are."""
    before: Explanation | None = None
    for sync in replay.syncs:
        yield since_its_timer(search, before, sync)
        before = sync if sync.job is not None else before


def _services(
    search: CutSearch, replay: KeyReplay, asked: Sequence[Explanation]
) -> Iterator[Service]:
    """The syncs of a key as the work queue saw them."""
    before: Explanation | None = None
    earliest_ns = 0
    for number, sync in enumerate(asked):
        if sync.job is None:
            continue
        service = _service(search, replay, number, sync, before)
        if before is not None and _may_be_one(search.facts, before):
            service = replace(service, earliest_ns=min(service.earliest_ns, earliest_ns))
        earliest_ns = service.earliest_ns
        yield service
        before = replay.syncs[number]


def _service(
    search: CutSearch,
    replay: KeyReplay,
    number: int,
    sync: Explanation,
    before: Explanation | None,
) -> Service:
    facts, first = search.facts, sync.writes[0]
    named = first_write(facts.history.key, first)
    # What nothing explains, or nobody signs, may be somebody else's: it proves nothing of a queue.
    proves = not sync.problems and not _may_be_anybodys(facts, first)
    began_by_ns = _began_by_ns(facts, sync)
    if first.called_ns - min(sync.due_ns, began_by_ns) <= _AT_ONCE_NS:
        # Whatever held it up, it is not late: only what it overtook is of interest.
        return Service(
            first=named,
            served_ns=first.called_ns,
            earliest_ns=first_wake_ns(facts, before, first.rv) if proves else 0,
            certain_ns=first.called_ns,
            timed=False,
            judged=False,
        )
    woken = as_woken(search, before, sync)
    since = woken or sync
    found = due_with_unseen(search, replay.syncs, number, due(facts, before, since))
    interrupted = facts.run_context.interrupted(since.due_ns, first.recv_ns)
    unseen = facts.blind.passed(first.recv_ns) > facts.blind.passed(since.due_ns - 1)
    deadlines = [note for note in sync.notes if note.rule == "deadline"]
    unarmed = deadlines and any(
        _unarmed(facts, replay.syncs[:number], sync, note) for note in deadlines
    )
    return Service(
        first=named,
        served_ns=first.called_ns,
        earliest_ns=found.earliest_ns if proves else 0,
        certain_ns=min(found.certain_ns, began_by_ns),
        timed=found.timed,
        judged=woken is not None and not (interrupted or unseen or sync.problems or unarmed),
        idle=sync.idle + reads_before(facts.rules, first.kind),
    )


def _may_be_one(facts: KeyEvidence, before: Explanation) -> bool:
    """Whether a sync may be a part of the next one, or no sync of the controller's at all.

    What left no status may have gone on; what only an old cache explains, or begins with a write
    that nobody signs, may be another's.
    """
    if before.error or before.pods_unseen or _may_be_anybodys(facts, before.writes[0]):
        return True
    return not any(write.kind is WriteKind.STATUS_UPDATE for write in before.writes)


def _may_be_anybodys(facts: KeyEvidence, write: Write) -> bool:
    """Whether a write, looked at alone, may be another's: nothing tells who made it."""
    if facts.may_be_foreign(write):
        return not facts.owned_up(write)
    return write.kind in TIES and write.actor is None


def _began_by_ns(facts: KeyEvidence, sync: Explanation) -> int:
    """By then a sync had begun, for it had read its clock: what held up its key before was over.

    That it created nothing before a back-off was over tells no time if creations were refused.
    """
    first, clock_ns = sync.writes[0], read_clock_ns(sync)
    waited = any(note.rule == "backoff" for note in sync.notes)
    if waited and facts.refused.creations_within(first.index) is not None:
        clock_ns = max(clock_ns, first.called_ns)
    return clock_ns + CLOCK_SLACK_NS


def _unarmed(
    facts: KeyEvidence, before: Sequence[Explanation], sync: Explanation, note: Note
) -> bool:
    """Whether no timer may have been there for a deadline that a sync asked about."""
    if not note.numbers["armed"]:
        return True
    if not sync.timed or sync.due_ns != note.numbers["deadline_ns"]:
        return False
    return deadline_lost(facts, before, sync.due_ns)


def _seen(history: History, replay: KeyReplay) -> Iterator[Seen]:
    """How far the informers had got, where the syncs of this key leave no doubt."""
    for sync in replay.syncs:
        if sync.job is None or sync.problems or sync.stale is not None:
            continue
        at_ns = sync.writes[0].recv_ns
        if any(write.job is not None for write in sync.writes):
            yield Seen(at_ns, "jobs", sync.job.rv)  # a PUT succeeds on this revision only
        if sync.pod_cut and not sync.pods_unseen:
            yield Seen(at_ns, "pods", history.pods[sync.pod_cut - 1].rv)


def _behind(facts: KeyEvidence, replay: KeyReplay) -> Iterator[Behind]:
    """The syncs of the key that only caches explain which lack what was old when they wrote."""
    jobs, pods = facts.history.jobs, facts.history.pods
    for sync in replay.syncs:
        if sync.job is None or sync.problems:
            continue
        at_ns = sync.writes[0].recv_ns
        shown_ns = pods[sync.pod_cut - 1].recv_ns if sync.pod_cut else 0
        began_ns = max(sync.job.recv_ns, shown_ns)
        lacking = (
            ("jobs", jobs[sync.job.position + 1 : sync.job.position + 2]),
            ("pods", pods[sync.pod_cut : sync.pod_cut + 1]),
        )
        for stream, following in lacking:
            for revision in following:
                if revision.shown_ns <= at_ns - INFORMER_LAG_NS:
                    first = first_write(facts.history.key, sync.writes[0])
                    yield Behind(first, began_ns, at_ns, stream, revision.rv, idle=sync.idle)


# Writes of the key's syncs.


def _syncs(
    facts: KeyEvidence, replay: KeyReplay, asked: Sequence[Explanation]
) -> Iterator[Judgement]:
    history = facts.history
    odd = odd_bodies(replay.syncs)
    before: Explanation | None = None
    for sync, since in zip(replay.syncs, asked, strict=True):
        waited, before = _waited(facts, before, since), sync
        problems = {p.write.index: p for p in sync.problems if p.write is not None}
        whys = whys_explained(sync)
        verdict = Verdict.MATCH_LAGGED if sync.pods_unseen else Verdict.MATCH
        first, last = sync.writes[0], sync.writes[-1]
        for write in sync.writes:
            if write.index in problems:
                yield _divergence(history, sync, problems.pop(write.index))
                continue
            if write.index in odd:
                why = "the API server added other things to it than to the Job's other pods"
                fields = tuple(odd[write.index])
                yield judge_write(history, write, Verdict.DIFFERENT, why, fields=fields)
                continue
            why = whys[write.kind]
            doubts = [_ambiguous(facts, sync, write)] if write.kind in _OF_PODS else []
            if write is first:
                doubts.append(waited)
            if write is last:
                doubts += (_open_end(facts, sync), _unreported(sync))
            doubt = "; ".join(filter(None, doubts)) if any(doubts) else ""
            yield judge_write(
                history,
                write,
                verdict,
                f"{why}; {doubt}" if doubt else why,
                ambiguous=bool(doubt),
                lag_observations=sync.pods_unseen,
                lag_ns=sync.lag_ns,
                silent_syncs=len(sync.silent),
                assumptions=sync.assumptions,
            )
        for problem in sync.problems:
            if problem.write is None or problem.write.index in problems:
                yield _divergence(history, sync, problem)


def _waited(facts: KeyEvidence, before: Explanation | None, sync: Explanation) -> str:
    """That a sync came so long after its timer as only a busy process does; empty if it did not.

    Whether the process can be proved to have had the time, all keys together tell (`lateness`).
    """
    if before is None or sync.job is None or not sync.timed or sync.silent:
        return ""
    at_ns = sync.writes[0].called_ns
    since_ns = max(sync.due_ns, before.writes[-1].recv_ns)
    waited_ns = at_ns - since_ns
    if waited_ns <= CLOCK_SLACK_NS + CALL_LATENCY_NS:
        return ""
    held = ""
    if not ended_by_its_timer(facts, before, sync):
        if before.refused or facts.refused.reported_between(since_ns, at_ns):
            return ""
        refused = facts.refused.creations(at_ns) or facts.refused.writes(at_ns)
        held = ", or calls that were refused left no Event" if refused else ""
    return f"{waited_ns / NS_PER_S:.1f} s after its timer: a busy process, or it was late{held}"


def _unreported(sync: Explanation) -> str:
    """That only refusals which no Event tells excuse what a sync left out; empty if not."""
    for assumed in sync.assumptions:
        if assumed.evidence in (EVENTS_SPENT, EVENTS_WAITED, EVENTS_LATE):
            what = "creations" if assumed.kind == "refused-creations" else "calls"
            return f"{what} were refused without an Event, or left out: {assumed.evidence}"
    return ""


def _open_end(facts: KeyEvidence, sync: Explanation) -> str:
    """That the record's end cut a sync off which may have left something out; empty if not."""
    last = sync.writes[-1]
    if sync.rest is None or facts.interrupted(last):
        return ""
    stream = shown_in(CONTROLLER, sync.rest.kind.value)
    return left_open(facts.run_context, last.recv_ns, stream, sync.rest.what)


def _ambiguous(facts: KeyEvidence, sync: Explanation, write: Write) -> str:
    """Why the record cannot tell it from what the rules do not ask for; empty where it can.

    A user may have asked for a deletion at the moment at which the controller had to. And a pod for
    a Job that had ended is the controller's mistake, or follows from a cache that lagged.
    """
    if write.kind is WriteKind.POD_CREATE and sync.job is not None:
        job = facts.history.job_before(write.rv)
        ended = job is not None and job.view.status.finished is not None
        return _END_UNSEEN if ended and sync.job.view.status.finished is None else ""
    if write.kind is not WriteKind.POD_DELETE or write.actor is not None:
        return ""
    return "" if facts.owned_up(write) else _NOBODY_TOLD


def _divergence(history: History, sync: Explanation, problem: Problem) -> Judgement:
    rules = describe(sync.notes, problem.kind)
    why = (
        f"expected {problem.what}"
        + (f" ({'; '.join(rules)})" if rules else "")
        + f"; nearest cut tried: {describe_cut(sync)}"
    )
    actor = problem.write.actor if problem.write is not None else None
    if actor is not None:
        why += f"; the audit log names {actor} as the writer"
    elif problem.kind is WriteKind.FINALIZER_REMOVAL and problem.verdict == "extra":
        why += "; a watch does not tell who removes a finalizer: it may be another's work"
    if problem.write is None:
        first = sync.writes[0]
        return judge_missing(
            history, problem.kind, "", problem.what, why, rv=first.rv, time_ns=first.recv_ns
        )
    verdict = Verdict(problem.verdict)
    return judge_write(history, problem.write, verdict, why, fields=problem.fields)


# Writes that no sync of the key made.


def _orphan_removals(replay: KeyReplay) -> Iterator[Judgement]:
    for _, write, reason, _ in replay.of(WithoutSync.ORPHAN_WORKER):
        why = f"the orphan worker takes the finalizer off: {reason}"
        yield judge_write(replay.history, write, Verdict.MATCH, why)


def _foreign_deletions(
    facts: KeyEvidence, may_tell: Callable[[EventRow], bool], replay: KeyReplay
) -> Iterator[Judgement]:
    """Deletions that no rule asks for: others', unless the controller's own by Event or log."""
    history = replay.history
    events_recorded = "events" not in facts.run_context.not_recorded
    reported = {e.message: e for e in history.events if e.reason == "SuccessfulDelete"}
    explained = {
        event.message
        for sync in replay.syncs
        for event in sync.events
        if event.reason == "SuccessfulDelete"
    }
    for _, write, *_ in replay.of(WithoutSync.FOREIGN):
        assert write.pod is not None  # noqa: S101 - pod writes have one
        actor, message = write.actor, f"{DELETED_POD}{write.pod.view.name}"
        if actor is not None and actor.controller == COMPONENT:
            why = f"no cut makes a sync delete the pod, and the audit log names {actor}"
            yield judge_write(history, write, Verdict.EXTRA, why)
        elif (
            (row := reported.get(message)) is not None
            and message not in explained
            and not ((facts.collected(write) or facts.deleted_again(write)) and may_tell(row))
        ):
            why = (
                "the controller's Event SuccessfulDelete names the pod, and no cut makes a sync "
                "delete it"
            )
            yield judge_write(history, write, Verdict.EXTRA, why)
        else:
            found = deletion_evidence(
                history, write, events_recorded=events_recorded, reported_again=message in reported
            )
            if facts.namespace_ends(write):
                found = "its namespace terminates: the namespace controller deletes the pod"
            unknown = "no rule asks for the deletion, and the Events that would tell whether the "
            unknown += "controller made it are not in the record"
            verdict = Verdict.FOREIGN if found is not None else Verdict.UNKNOWABLE
            judged = judge_write(history, write, verdict, found or unknown)
            yield judged if found is not None else replace(judged, reason=Reason.NOT_RECORDED)


def _unknowable(facts: KeyEvidence, replay: KeyReplay) -> Iterator[Judgement]:
    history = facts.history
    for write in history.writes:
        if write.hidden:
            why = f"only its result was listed: {_gap_before(facts, write)}"
            yield judge_write(history, write, Verdict.UNKNOWABLE, why, reason=Reason.GAP)
    for unsynced in replay.of(WithoutSync.UNKNOWABLE):
        yield judge_write(
            history, unsynced.write, Verdict.UNKNOWABLE, unsynced.why, reason=unsynced.unknowable
        )


def _gap_before(facts: KeyEvidence, write: Write) -> str:
    since_ns = write.recv_ns - CLOCK_SLACK_NS + 1
    for gap in facts.run_context.gaps_touching(since_ns, write.recv_ns):
        return gap.why
    return "the watch was begun again"


# Events.


def _lone_events(
    facts: KeyEvidence, search: CutSearch, replay: KeyReplay
) -> Callable[[EventRow], bool]:
    """Whether a sync without a write may have told an Event; none, of a Job not searched."""
    if facts.run_context.not_searched(*_name(facts.history)) is not None:
        ended = (unsynced.unknowable for unsynced in replay.of(WithoutSync.UNKNOWABLE))
        if any(reason is Reason.MISFIT for reason in ended):
            return lambda _: False
    return LoneEvents(search, replay.syncs).may_tell


def _events(
    facts: KeyEvidence, may_tell: Callable[[EventRow], bool], replay: KeyReplay
) -> Iterator[Judgement]:
    for row, reported in explain_events(
        replay,
        may_tell,
        restarted_ns=[blind.until_ns for blind in facts.run_context.restarts],
        width_ns=facts.run_context.width_ns,
    ):
        reason = None
        if reported is EventSource.BY_A_SYNC:
            verdict, why = Verdict.MATCH, "a sync that is explained hands out this Event"
        elif reported is EventSource.UNPOSTED:
            verdict, reason = Verdict.UNKNOWABLE, Reason.NOT_RECORDED
            why = (
                f"its first row counts {row.count}: a post of it was lost, and a sync that left "
                "nothing else handed it out again, or its count is wrong"
            )
        elif (reason := why_unseen(facts, replay, row)) is not None:
            verdict = Verdict.UNKNOWABLE
            misfit = reason is Reason.MISFIT and facts.run_context.not_searched(
                *_name(facts.history)
            )
            why = misfit or (
                f"it belongs to a sync of the Job at resourceVersion {row.involved_rv}, which "
                "the record could not see"
            )
        else:
            verdict = Verdict.EXTRA
            why = f"no sync hands out an Event {row.reason} with this message by then"
        yield _event(facts.history, row, verdict, why, reason)


def _name(history: History) -> tuple[str, str]:
    return history.namespace, history.name


def _event(
    history: History, row: EventRow, verdict: Verdict, why: str, reason: Reason | None
) -> Judgement:
    return Judgement(
        CONTROLLER,
        object_of(history, row.involved_uid),
        "event",
        verdict,
        row.recv_ns,
        str(row.rv),
        f"{row.reason}: {row.message}",
        why,
        reason=reason,
    )
