"""Plans of pods: overrides, counting, and what stands when nothing is said."""

import orjson
import pytest

from tests.e2e.plan import ANNOTATION, INDEX_ANNOTATION, Plan, plan_of


def planned(plan: object, *, ordinal: int = 0, attempt: int = 0, index: str = "") -> Plan:
    annotations = {ANNOTATION: orjson.dumps(plan).decode()}
    if index:
        annotations[INDEX_ANNOTATION] = index
    return plan_of(annotations, ordinal=ordinal, attempt=attempt)


def test_without_a_plan_a_pod_runs_until_it_is_deleted() -> None:
    plan = plan_of({}, ordinal=0, attempt=0)
    assert plan.run_seconds is None
    assert plan.exit_code == 0
    assert plan.term_exit_code == 137


def test_an_ordinal_overrides_and_others_keep_the_general_plan() -> None:
    raw = {"run": 2, "byOrdinal": {"1": {"run": 5, "exit": 3}}}
    assert planned(raw, ordinal=0).run_seconds == 2
    assert planned(raw, ordinal=1) == planned({"run": 5, "exit": 3})


def test_an_index_overrides_an_ordinal() -> None:
    raw = {"byOrdinal": {"0": {"exit": 1}}, "byIndex": {"2": {"exit": 9}}}
    assert planned(raw, index="2").exit_code == 9
    assert planned(raw, index="1").exit_code == 1


@pytest.mark.parametrize(("ordinal", "code"), [(0, 1), (1, 1), (2, 0), (3, 0)])
def test_fail_first_counts_the_pods_of_a_job(ordinal: int, code: int) -> None:
    assert planned({"failFirst": 2}, ordinal=ordinal).exit_code == code


@pytest.mark.parametrize(("attempt", "code"), [(0, 7), (1, 0)])
def test_fail_first_counts_the_attempts_of_an_index(attempt: int, code: int) -> None:
    raw = {"byIndex": {"4": {"failFirst": 1, "exit": 7}}}
    assert planned(raw, ordinal=30, attempt=attempt, index="4").exit_code == code


def test_exit_codes_by_container_fall_back_to_the_general_one() -> None:
    plan = planned({"exit": 2, "exits": {"side": 42}})
    assert plan.exit_of("side") == 42
    assert plan.exit_of("main") == 2
