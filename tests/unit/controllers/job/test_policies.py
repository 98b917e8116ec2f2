"""The pod failure policy and the success policy, rule by rule.

Upstream: pkg/controller/job/pod_failure_policy_test.go:TestMatchPodFailurePolicy,
pkg/controller/job/success_policy_test.go:TestMatchSuccessPolicy.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.objects import condition, condition_rule, container, exit_code_rule, pod
from tracekit.base.kube.views import PodView
from tracekit.ports.job.indexes import Intervals
from tracekit.ports.job.pod_failure_policy import match_pod_failure_policy
from tracekit.ports.job.success_policy import match_success_policy


def exits(*codes: int, init: int | None = None) -> PodView:
    return pod(
        "mypod",
        "Failed",
        containers=[container(f"c{number}", exit_code=code) for number, code in enumerate(codes)],
        init_containers=[] if init is None else [container("init", exit_code=init)],
    )


def has(*conditions: tuple[str, str]) -> PodView:
    return pod("mypod", "Failed", conditions=[condition(*entry) for entry in conditions])


def failed_with(code: int, rule: int, name: str = "c0") -> str:
    return (
        f"Container {name} for pod default/mypod failed with exit code {code} "
        f"matching FailJob rule at index {rule}"
    )


DISRUPTED = has(("DisruptionTarget", "True"))
NONE = (None, True, None)
IGNORED = (None, False, "Ignore")
FAILED_INDEX = (None, True, "FailIndex")
COUNTED = (None, True, "Count")

FAILURE_CASES: dict[str, tuple[list[dict[str, Any]] | None, PodView, tuple[Any, ...]]] = {
    "no policy": (None, exits(2), NONE),
    "no rules": ([], exits(2), NONE),
    "an unknown action on exit codes is skipped": (
        [exit_code_rule("Explode", 1, 2), exit_code_rule("FailJob", 2, 3)],
        exits(2),
        (failed_with(2, 1), True, "FailJob"),
    ),
    "an unknown action on conditions is skipped": (
        [condition_rule("Explode"), condition_rule("Ignore")],
        DISRUPTED,
        IGNORED,
    ),
    "an unknown operator never matches": (
        [exit_code_rule("Ignore", 1, 2, operator="Near"), exit_code_rule("FailJob", 2, 3)],
        exits(2),
        (failed_with(2, 1), True, "FailJob"),
    ),
    "Ignore on an exit code": ([exit_code_rule("Ignore", 1, 2, 3)], exits(2), IGNORED),
    "negative exit codes, as Windows has them": (
        [exit_code_rule("Ignore", -1073741676, -1073741510)],
        exits(-1073741510),
        IGNORED,
    ),
    "FailJob on an exit code": (
        [exit_code_rule("FailJob", 1, 2, 3)],
        exits(2),
        (failed_with(2, 0), True, "FailJob"),
    ),
    "containers that succeeded are skipped": (
        [exit_code_rule("FailJob", 111, operator="NotIn")],
        exits(111, 0, init=0),
        NONE,
    ),
    "0 is never matched, not even by NotIn": (
        [exit_code_rule("FailJob", 5, operator="NotIn")],
        exits(0, 0),
        NONE,
    ),
    "NotIn 0 matches every failure": (
        [exit_code_rule("FailJob", 0, operator="NotIn")],
        exits(1, 0),
        (failed_with(1, 0), True, "FailJob"),
    ),
    "FailIndex on an exit code": ([exit_code_rule("FailIndex", 1, 2, 3)], exits(2), FAILED_INDEX),
    "Count on an exit code": ([exit_code_rule("Count", 1, 2, 3)], exits(2), COUNTED),
    "the second rule matches": (
        [exit_code_rule("Count", 1, 2, 3), exit_code_rule("FailJob", 4, 5, 6)],
        exits(6),
        (failed_with(6, 1), True, "FailJob"),
    ),
    "a container that has not ended is skipped": (
        [exit_code_rule("Count", 2)],
        pod("mypod", "Failed", containers=[container("a"), container("b", exit_code=2)]),
        COUNTED,
    ),
    "the first matching container is named": (
        [exit_code_rule("FailJob", 2, 3)],
        exits(9, 3, 2),
        (failed_with(3, 0, "c1"), True, "FailJob"),
    ),
    "regular containers come before init containers": (
        [exit_code_rule("FailJob", 2, 3)],
        exits(2, init=3),
        (failed_with(2, 0), True, "FailJob"),
    ),
    "init containers are looked at too": (
        [exit_code_rule("FailJob", 3)],
        exits(2, init=3),
        (failed_with(3, 0, "init"), True, "FailJob"),
    ),
    "the container that the rule names": (
        [exit_code_rule("FailJob", 3, containerName="c1")],
        exits(3, 3),
        (failed_with(3, 0, "c1"), True, "FailJob"),
    ),
    "another container than the rule names": (
        [exit_code_rule("FailJob", 3, containerName="c1")],
        exits(3, 4),
        NONE,
    ),
    "Ignore on a condition": ([condition_rule("Ignore")], DISRUPTED, IGNORED),
    "Count on a condition": ([condition_rule("Count")], DISRUPTED, COUNTED),
    "FailIndex on a condition": ([condition_rule("FailIndex")], DISRUPTED, FAILED_INDEX),
    "FailJob on a condition": (
        [condition_rule("FailJob")],
        DISRUPTED,
        (
            "Pod default/mypod has condition DisruptionTarget matching FailJob rule at index 0",
            True,
            "FailJob",
        ),
    ),
    "a condition that shall be False": (
        [condition_rule("Ignore", status="False")],
        has(("DisruptionTarget", "False")),
        IGNORED,
    ),
    "a condition that shall be Unknown": (
        [condition_rule("Ignore", status="Unknown")],
        has(("DisruptionTarget", "Unknown")),
        IGNORED,
    ),
    "a condition that shall be False and is True": (
        [condition_rule("Ignore", status="False")],
        DISRUPTED,
        NONE,
    ),
    "a condition that shall be True and is False": (
        [condition_rule("Ignore")],
        has(("DisruptionTarget", "False")),
        NONE,
    ),
    "any of several conditions is enough": (
        [
            {
                "action": "Ignore",
                "onPodConditions": [
                    {"type": "OutOfMemory", "status": "True"},
                    {"type": "DisruptionTarget", "status": "True"},
                ],
            }
        ],
        DISRUPTED,
        IGNORED,
    ),
    "exit codes and conditions: the rules go in order": (
        [condition_rule("Ignore"), exit_code_rule("FailJob", 1)],
        pod("mypod", "Failed", conditions=[condition("DisruptionTarget")]),
        IGNORED,
    ),
    "a rule without a pattern never matches": ([{"action": "FailJob"}], exits(1), NONE),
}


@pytest.mark.parametrize(
    ("given", "found", "expected"), FAILURE_CASES.values(), ids=FAILURE_CASES.keys()
)
def test_pod_failure_policy(
    given: list[dict[str, Any]] | None, found: PodView, expected: tuple[Any, ...]
) -> None:
    assert tuple(match_pod_failure_policy(given, found, fail_index=True)) == expected


def test_fail_index_is_skipped_where_the_gate_is_off() -> None:
    given = [exit_code_rule("FailIndex", 2), exit_code_rule("Ignore", 2)]
    assert tuple(match_pod_failure_policy(given, exits(2), fail_index=False)) == IGNORED
    assert tuple(match_pod_failure_policy(given, exits(2), fail_index=True)) == FAILED_INDEX


MATCHED = "Matched rules at index 0"
SUCCESS_CASES: dict[str, tuple[list[dict[str, Any]] | None, Intervals, str | None]] = {
    # rules, succeeded indexes of ten, message
    "no policy": (None, ((0, 0),), None),
    "no rules": ([], ((0, 0),), None),
    "nothing succeeded": ([{"succeededCount": 1}], (), None),
    "nothing succeeded and nothing required": ([{"succeededIndexes": ""}], (), None),
    "an empty list of indexes is never met": ([{"succeededIndexes": ""}], ((1, 3),), None),
    "indexes that cannot be read": ([{"succeededIndexes": "some-thing"}], ((0, 0),), None),
    "indexes beyond completions": ([{"succeededIndexes": "10-12,14-16"}], ((1, 3), (5, 7)), None),
    "all required indexes": ([{"succeededIndexes": "0-2"}], ((0, 2), (4, 7)), MATCHED),
    "none of the required indexes": ([{"succeededIndexes": "3"}], ((0, 2),), None),
    "enough of any": ([{"succeededCount": 2}], ((0, 2),), MATCHED),
    "exactly enough": ([{"succeededCount": 3}], ((0, 2),), MATCHED),
    "not enough of any": ([{"succeededCount": 4}], ((0, 2),), None),
    "the second rule": (
        [{"succeededIndexes": "9"}, {"succeededIndexes": "4,6"}],
        ((0, 2), (4, 7)),
        "Matched rules at index 1",
    ),
    "both rules: the first is told": (
        [{"succeededIndexes": "0,1"}, {"succeededIndexes": "5"}],
        ((0, 2), (4, 7)),
        MATCHED,
    ),
    "enough of the required indexes": (
        [{"succeededIndexes": "3-6", "succeededCount": 2}],
        ((0, 2), (4, 7)),
        MATCHED,
    ),
    "not enough of the required indexes": (
        [{"succeededIndexes": "3-6", "succeededCount": 2}],
        ((0, 2), (6, 7)),
        None,
    ),
    "required within what succeeded": ([{"succeededIndexes": "2-4,6-8"}], ((1, 9),), MATCHED),
    "required is what succeeded": ([{"succeededIndexes": "2-4,6-9"}], ((2, 4), (6, 9)), MATCHED),
    "overlap at the front": ([{"succeededIndexes": "1-3,5-7"}], ((2, 4), (6, 8)), None),
    "overlap at the front, enough": (
        [{"succeededIndexes": "1-3,5-7", "succeededCount": 4}],
        ((2, 4), (6, 8)),
        MATCHED,
    ),
    "overlap at the back": ([{"succeededIndexes": "2-4,6-9"}], ((1, 3), (5, 7)), None),
    "overlap at the back, enough": (
        [{"succeededIndexes": "2-4,6-9", "succeededCount": 4}],
        ((1, 3), (5, 7)),
        MATCHED,
    ),
    "more required than succeeded": ([{"succeededIndexes": "0-4,6-9"}], ((1, 3), (7, 8)), None),
    "more required than succeeded, enough": (
        [{"succeededIndexes": "0-4,6-9", "succeededCount": 5}],
        ((1, 3), (7, 8)),
        MATCHED,
    ),
    "one range over two": (
        [{"succeededIndexes": "0-6,8-9", "succeededCount": 7}],
        ((1, 3), (5, 9)),
        MATCHED,
    ),
    "one range over two, one too few": (
        [{"succeededIndexes": "0-6,8-9", "succeededCount": 8}],
        ((1, 3), (5, 9)),
        None,
    ),
    "two ranges within one": (
        [{"succeededIndexes": "0-3,6-9", "succeededCount": 7}],
        ((1, 9),),
        MATCHED,
    ),
    "two ranges within one, all required": ([{"succeededIndexes": "0-3,6-9"}], ((1, 9),), None),
}


@pytest.mark.parametrize(
    ("given", "succeeded", "message"), SUCCESS_CASES.values(), ids=SUCCESS_CASES.keys()
)
def test_success_policy(
    given: list[dict[str, Any]] | None, succeeded: Intervals, message: str | None
) -> None:
    assert match_success_policy(given, completions=10, succeeded=succeeded) == message
