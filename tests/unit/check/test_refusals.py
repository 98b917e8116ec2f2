"""What may have been refused, and until when what tells of it tells so."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tracekit.base.kube.events import SPAM_REFILL_NS
from tracekit.check.replay.history import build_history
from tracekit.check.replay.refusals import EVENTS_LATE, Refusals
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
