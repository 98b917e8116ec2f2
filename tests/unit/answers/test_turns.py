"""What a Job waits for whose pods have ended and whose controller has not come to it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tracekit.answers.findings.controllers import BACKLOG
from tracekit.answers.findings.jobs import NOT_BEGUN, _not_begun
from tracekit.answers.findings.uncounted import uncounted_case, waits_for_its_turn
from tracekit.answers.model import Severity, Target
from tracekit.answers.tables import wait_rows
from tracekit.answers.trace_model import TRACKING
from tracekit.base.kube.timestamps import NS_PER_S

END_NS = 1000 * NS_PER_S


def looked(*, whole: bool = True, **more: Any) -> Any:
    """A record of Jobs and pods up to `END_NS`, in which somebody leads."""
    return SimpleNamespace(
        as_of=lambda *_: END_NS, led_since=lambda from_ns, _: from_ns, is_whole=whole,
        end_ns=END_NS, events_of_pod=lambda _: (), **more,
    )  # fmt: skip


def pod(phase: str, *, since_s: int, finalizers: tuple[str, ...] = (TRACKING,)) -> Any:
    at_ns = END_NS - since_s * NS_PER_S
    end = None if phase in ("Pending", "Running") else SimpleNamespace(at_ns=at_ns)
    last = SimpleNamespace(
        gone=False, finalizers=finalizers, condition=lambda _: None, spec={},
        row={"containers": [], "node_name": None, "deleted_ns": None},
    )  # fmt: skip
    return SimpleNamespace(
        name="a-1", uid="p-1", phase=phase, end=end, last=last, deletion_ns=None, gone_ns=None,
        first=None, created_ns=at_ns, over_ns=at_ns if end else 0, ran_at_all=phase == "Running",
        waiting=None,
    )  # fmt: skip


def job(*pods: Any, condition: str = "", **spec: Any) -> Any:
    row = {"uncounted_succeeded": (), "uncounted_failed": (), "start_ns": 1}
    met = {"type": condition, "last_transition_ns": END_NS}
    last = SimpleNamespace(
        row=row, at_ns=END_NS, true=lambda kind: met if kind == condition else None
    )
    return SimpleNamespace(
        namespace="ns", name="a", uid="j-1", target=Target("Job", "ns", "a", "j-1"), cronjob=None,
        pods=list(pods), spec=spec, last=last, managed=True, ended_ns=None, gone_ns=None,
        created_ns=END_NS - 90 * NS_PER_S,
    )  # fmt: skip


BUSY = [(END_NS - 60 * NS_PER_S, END_NS, 300)]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_who_is_behind_has_ended_pods_to_count(phase: str) -> None:
    case = waits_for_its_turn(looked(), job(pod(phase, since_s=20)), BUSY)
    assert case is not None
    assert case.claim == "its pods ended, and its controller was behind (TK207)"
    assert "not counted 20 s after the first ended" in case.detail
    assert (case.cause, case.badness) == (BACKLOG, Severity.INFO)


@pytest.mark.parametrize(
    ("pods", "spells"),
    [
        ([pod("Failed", since_s=20)], []),
        ([pod("Failed", since_s=1)], BUSY),
        ([pod("Failed", since_s=20, finalizers=())], BUSY),
        ([pod("Failed", since_s=20), pod("Running", since_s=30)], BUSY),
    ],
    ids=["not behind", "just ended", "counted", "another one runs"],
)
def test_else_nothing_waits_for_its_turn(pods: list[Any], spells: list[Any]) -> None:
    assert waits_for_its_turn(looked(), job(*pods), spells) is None


def test_the_rows_of_one_job_do_not_tell_whether_its_controller_was_behind() -> None:
    stale = [(END_NS - 70 * NS_PER_S, pod("Failed", since_s=70))]
    case = uncounted_case(looked(whole=False), job(), stale)
    assert (case.claim, case.badness) == (
        "its controller has not counted pods that ended", Severity.WARNING,
    )  # fmt: skip
    assert "tracekit diagnose TRACE" in str(case.todo)
    assert uncounted_case(looked(), job(), stale).badness is Severity.ERROR


def test_pods_that_have_just_come_are_not_said_to_wait_for_a_node() -> None:
    one = job(pod("Pending", since_s=1))
    case = _not_begun(looked(), one, [])
    assert (case.rule, case.claim) == (
        NOT_BEGUN, "has not begun: its controller came late to create its pods",
    )  # fmt: skip
    assert "its first pod came 1 s before" in case.detail
    assert _not_begun(looked(), one, [(END_NS - 99 * NS_PER_S, END_NS, 9)]).cause is BACKLOG


@pytest.mark.parametrize(
    ("one", "what"),
    [
        (job(), "its controller, to create pods"),
        (job(pod("Succeeded", since_s=1)), "its controller, to count pods that ended"),
        (job(pod("Failed", since_s=1, finalizers=())), "its controller, to create pods"),
        (job(pod("Succeeded", since_s=1), condition="SuccessCriteriaMet"),
         "its controller, to end it (SuccessCriteriaMet)"),
        (job(suspend=True), "nothing: it is suspended"),
        (job(parallelism=0), "nothing: parallelism is 0"),
    ],
)  # fmt: skip
def test_what_the_controller_has_to_do_next_is_named(one: Any, what: str) -> None:
    assert [row["waits_for"] for row in wait_rows(looked(jobs=[one]), [], None)] == [what]


def test_where_pods_were_not_seen_it_is_unknown() -> None:
    facts = looked(jobs=[job()])
    facts.as_of = lambda *_: 0
    assert [row["waits_for"] for row in wait_rows(facts, [], None)] == ["unknown"]
