"""What may have been refused, and until when what tells of it tells so."""

from __future__ import annotations

from typing import Any, cast

import pytest
from msgspec.structs import replace

from tests.support.objects import job, pod
from tracekit.base.kube.events import SPAM_REFILL_NS
from tracekit.base.kube.views import Condition
from tracekit.check.replay.history import Actor, Evidence, Revision, build_history
from tracekit.check.replay.other_clocks import TELLING_NS
from tracekit.check.replay.refusals import BEGAN_ANEW, EVENTS_LATE, Refusals
from tracekit.check.replay.run_context import Refusing, RunContext, Unposted
from tracekit.versions.job import JobRules
from tracekit.versions.release import Era

S = 10**9
RULES = JobRules.of(Era.resolve("v1.36.3"))
REPORTED_NS = 1_000 * S
#: The spam filter may have kept the next Event back, and then the longest back-off may last.
LASTS_NS = SPAM_REFILL_NS + RULES.retries.backoff_ns_max


def refusals(**context: object) -> Refusals:
    """Those of a Job of which nothing is known, in a record of 10,000 s."""
    history = build_history("ns", "job", [], [], [])
    return Refusals(history, RULES, replace(RunContext(10_000 * S), **context))


@pytest.mark.parametrize(
    ("at_ns", "refused"),
    [(S, True), (REPORTED_NS + LASTS_NS, True), (REPORTED_NS + LASTS_NS + 1, False)],
)
def test_a_webhook_is_believed_to_refuse_for_so_long(at_ns: int, refused: bool) -> None:
    known = refusals(refusing={"ns": Refusing("a webhook refused", REPORTED_NS)})
    found = known.writes(at_ns)
    assert (found is not None) is refused
    if found is not None:
        assert (found.kind, found.evidence) == ("refused-writes", "a webhook refused")
        assert found.until_ns == REPORTED_NS + LASTS_NS


def test_a_webhook_of_another_namespace_refuses_nothing_here() -> None:
    assert refusals(refusing={"other": Refusing("", REPORTED_NS)}).writes(REPORTED_NS) is None


@pytest.mark.parametrize("behind", [False, True])
def test_events_that_wait_may_tell_of_a_webhook(behind: bool) -> None:
    """What was refused before is tried again then: its next status shows it, or the end."""
    waiting = Unposted(9_990 * S, 10_000 * S, "the record ends", behind=behind)
    found = refusals(unposted=(waiting,)).writes(9_000 * S)
    assert (found.evidence if found is not None else None) == (EVENTS_LATE if behind else None)


CREATED_NS = 5_000 * S
#: So late a startTime is later than the pod by any clock: both count in whole seconds.
LATER_NS = CREATED_NS + S + TELLING_NS


def revision(rv: int, kind: str, view: Any) -> Revision[Any]:
    at_ns = CREATED_NS + rv * S
    return Revision(rv, at_ns, rv, kind, replace(view, rv=rv), cast("Evidence", None))


def began_anew(
    start_ns: int,
    *,
    edited: bool = False,
    resumed: bool = False,
    named: bool = False,
    **context: object,
) -> bool:
    """Whether a Job's startTime says that a status was refused, after a pod and before it."""
    made = job()
    conditions = (Condition("Suspended", "False", "", "", None, None),) if resumed else ()
    status = replace(made.status, start_ns=start_ns, conditions=conditions)
    jobs = [revision(1, "ADDED", made), revision(9, "MODIFIED", replace(made, status=status))]
    if named:
        jobs[-1].actor = Actor("system:serviceaccount:kube-system:job-controller", "")
    if edited:
        jobs.insert(1, revision(5, "MODIFIED", replace(made, labels={"edited": "yes"})))
    pods = [revision(3, "ADDED", replace(pod("a"), created_ns=CREATED_NS))]
    known = build_history("default", "demo", jobs, pods, [])
    found = Refusals(known, RULES, replace(RunContext(10_000 * S), **context))
    assert found.writes(CREATED_NS + 2 * S) is None  # before the pod
    refused = found.writes(CREATED_NS + 4 * S)
    assert refused is None or refused.evidence == BEGAN_ANEW
    return refused is not None


def test_a_first_status_that_was_refused_shows_in_the_next_ones_start() -> None:
    assert began_anew(LATER_NS)
    assert not began_anew(LATER_NS - 1)
    assert began_anew(LATER_NS + 2 * S, servers_behind_ns=2 * S)
    assert not began_anew(LATER_NS, servers_behind_ns=2 * S)
    assert not began_anew(LATER_NS, edited=True)  # it met a conflict
    assert not began_anew(LATER_NS, resumed=True)  # of whose pods startTime is always later
    assert not began_anew(LATER_NS, named=True)  # such a log has what was refused
