"""Lives for pods that the record never had."""

from __future__ import annotations

from typing import Any, cast

import pytest
from msgspec.structs import replace

from tests.support.objects import pod
from tracekit.answers.whatif_inputs.extrapolated_pods import ExtrapolatedLifetimes
from tracekit.answers.whatif_inputs.pod_lifetimes import (
    SeenLife,
    deleted_by_others,
    goes_on_ns,
    ran_anew,
    scheduled_anew,
    seen_life,
)
from tracekit.base.kube.views import PodView
from tracekit.check.replay.history import Evidence, Revision
from tracekit.model.cluster.pod_life import PodLife, Slot
from tracekit.model.simulate.draws import SeededDraws

POD: dict[str, Any] = {"metadata": {"uid": "p1"}}


def slot(
    uid: str, ordinal: int, index: int | None = None, attempt: int = 0, cron: str = ""
) -> Slot:
    """A place of a Job's pod; without an index its attempt is its ordinal."""
    return Slot("shop", uid, uid, cron, ordinal, index, ordinal if index is None else attempt)


def seen(run_ns: int, place: Slot, cut_off_ns: int | None = None, exit_code: int = 0) -> SeenLife:
    """A life that is known by its run time."""
    return SeenLife(place, PodLife(run_ns=run_ns, exit_code=exit_code), cut_off_ns)


def cut_off(at_ns: int, place: Slot, *restarts_at_ns: int) -> SeenLife:
    """A life that was cut off when it had run so long."""
    return SeenLife(place, PodLife(run_ns=None, restarts_at_ns=restarts_at_ns), at_ns)


LIVES = [
    seen(1, slot("a", 0, 0, 0)),
    seen(2, slot("a", 1, 0, 1)),
    seen(3, slot("a", 2, 1, 0)),
    seen(4, slot("a", 3, 1, 1), cut_off_ns=1),
    seen(5, slot("b", 0, cron="nightly")),
    seen(6, slot("c", 0, cron="nightly")),
]
TEMPLATES = {"a": "one", "b": "two", "c": "two", "e": "two", "f": "one"}


@pytest.mark.parametrize(
    ("place", "rule", "run_ns"),
    [
        (slot("a", 1, 0, 1), "seen", 2),
        (slot("a", 9, 0, 2), "same index", 2),
        (slot("a", 9, 1, 2), "same index", 3),  # the later one was cut off
        (slot("a", 9, 7), "same Job", 2),  # the last attempt of any index
        (slot("a", 2), "same place in the row", 3),
        (slot("b", 1), "same Job", 5),
        (slot("d", 0, cron="nightly"), "same CronJob", 5),  # the first of equal ones
        (slot("e", 0), "same template", 5),
        (slot("f", 0), "none", None),  # those of its template did not fare alike
        (slot("g", 0), "none", None),
    ],
)
def test_the_first_rule_that_finds_a_life(place: Slot, rule: str, run_ns: int | None) -> None:
    lives = ExtrapolatedLifetimes.of(LIVES, TEMPLATES)
    assert lives.life_of(place, POD).run_ns == run_ns
    assert lives.given["p1"].rule == rule


def test_a_life_that_was_cut_off_goes_on_as_one_that_lasted_longer() -> None:
    lives = ExtrapolatedLifetimes.of(
        [seen(9, slot("a", 0)), seen(3, slot("a", 1)), cut_off(5, slot("a", 2))], {}
    )
    assert lives.life_of(slot("a", 2), POD).run_ns == 9
    given = lives.given["p1"]
    assert (given.rule, given.cut_off_ns, given.beyond) == ("seen", 5, "same Job")


def test_a_life_that_outlived_all_others_stays_cut_off() -> None:
    lives = ExtrapolatedLifetimes.of([seen(4, slot("a", 0)), cut_off(5, slot("a", 1))], {})
    assert lives.life_of(slot("a", 1), POD).run_ns is None
    assert not lives.given["p1"].beyond


def test_a_pod_that_waited_when_it_was_cut_off_starts_as_its_like() -> None:
    waiting = SeenLife(slot("a", 1), PodLife(bind_ns=2, start_ns=None, run_ns=None), 5)
    patient = SeenLife(slot("a", 0), PodLife(bind_ns=3, start_ns=7, run_ns=4))
    found = ExtrapolatedLifetimes.of([patient, waiting], {}).life_of(slot("a", 1), POD)
    assert (found.bind_ns, found.start_ns, found.run_ns) == (2, 7, 4)


def test_restarts_go_on_with_those_of_the_longer_life() -> None:
    longer = SeenLife(slot("a", 0), PodLife(run_ns=90, restarts_at_ns=(25, 60)))
    found = ExtrapolatedLifetimes.of([longer, cut_off(50, slot("a", 1), 30)], {}).life_of(
        slot("a", 1), POD
    )
    assert found.restarts_at_ns == (30, 60)


@pytest.mark.parametrize("restarts", [(), (15,), (25, 45)])
def test_containers_that_failed_at_other_times_tell_nothing(restarts: tuple[int, ...]) -> None:
    """A container that was started again once may end well where another failed a second time."""
    longer = SeenLife(slot("a", 0), PodLife(run_ns=90, restarts_at_ns=restarts))
    lives = ExtrapolatedLifetimes.of([longer, cut_off(50, slot("a", 1), 30)], {})
    assert lives.life_of(slot("a", 1), POD).run_ns is None
    assert not lives.given["p1"].beyond


def test_how_a_pod_stops_is_known_of_its_like() -> None:
    slow = PodLife(run_ns=None, grace_ns=7, gone_ns=2, term_exit_code=3)
    stopped = SeenLife(slot("a", 0), slow, 5, stopped=True)
    lives = ExtrapolatedLifetimes.of([stopped, seen(9, slot("a", 1)), seen(9, slot("b", 0))], {})
    found = lives.life_of(slot("a", 1), POD)
    assert (found.grace_ns, found.gone_ns, found.term_exit_code) == (7, 2, 3)
    assert lives.given["p1"].stops == "same Job"
    assert lives.life_of(slot("a", 0), POD).grace_ns == 7
    assert lives.given["p1"].stops == "seen"
    lives.life_of(slot("b", 0), POD)
    assert lives.given["p1"].stops == "none"


@pytest.mark.parametrize(
    ("codes", "disputed"), [((0, 1), True), ((1, 0), False), ((1, 1), False), ((0, 0), False)]
)
def test_pods_that_succeed_and_then_fail_tell_nothing_of_the_next(
    codes: tuple[int, int], disputed: bool
) -> None:
    lives = ExtrapolatedLifetimes.of(
        [seen(4, slot("a", n), None, code) for n, code in enumerate(codes)], {}
    )
    lives.life_of(slot("a", 2), POD)
    assert lives.given["p1"].disputed is disputed


@pytest.mark.parametrize(
    ("restarts", "so_long"), [((), None), ((4,), 1), ((1,), 0), ((2, 4), None)]
)
def test_a_container_that_failed_once_may_succeed_the_second_time(
    restarts: tuple[int, ...], so_long: int | None
) -> None:
    assert goes_on_ns(cut_off(6, slot("a", 0), *restarts)) == so_long


def test_a_deletion_by_others_can_be_bound_to_the_age_of_the_pod() -> None:
    life = deleted_by_others(cut_off(6, slot("a", 0)), 8, 30)
    assert life.life.deleted_ns is None
    bound = life.with_deletion().life
    assert (bound.deleted_ns, bound.deleted_grace_s) == (8, 30)


def test_the_scheduler_takes_another_time_that_it_was_seen_to_take() -> None:
    """A pod that was bound at once does not get the time of one that waited for a node."""
    soon, late = (300, 310, 350, 400), (60_000, 90_000)
    lives = [
        SeenLife(slot("a", n), PodLife(bind_ns=bind_ns))
        for n, bind_ns in enumerate((*soon, *late, None))
    ]

    def binds(seed: int) -> list[int | None]:
        return [life.life.bind_ns for life in scheduled_anew(lives, SeededDraws(seed))]

    drawn = [binds(seed) for seed in range(20)]
    assert drawn[3] == binds(3)
    for place, seen_ns in enumerate((soon, soon, soon, soon, late, late, (None,))):
        assert {one[place] for one in drawn} == {*seen_ns}


def test_a_container_that_runs_again_takes_as_long_as_it_was_seen_to_take() -> None:
    """A back-off is no run, and a life that was cut off keeps its times."""
    life = SeenLife(slot("a", 0), PodLife(run_ns=1400, restarts_at_ns=(100, 210)))
    whole = [ran_anew([life], SeededDraws(seed))[0].life for seed in range(40)]
    assert {one.restarts_at_ns for one in whole} == {(100, 200), (100, 210), (110, 210), (110, 220)}
    assert {(one.run_ns or 0) - one.restarts_at_ns[-1] for one in whole} == {1190}
    still = [seen(9, slot("a", 0)), cut_off(50, slot("a", 1), 30)]
    assert ran_anew(still, SeededDraws(1)) == still


def test_one_revision_may_show_any_number_of_restarts() -> None:
    """A list with each of 2,147,483,647 took 17 GB; `restartCount` is an int32."""
    first = pod("a")
    running = replace(first, phase="Running", node_name="node-1")
    views = [first, running, *(replace(running, restarts=count) for count in (1, 4, 2**62, 9))]
    revisions: list[Revision[PodView]] = [
        Revision(at, at * 10, at, "MODIFIED", view, cast("Evidence", None))
        for at, view in enumerate(views)
    ]
    life = seen_life(slot("a", 0), revisions).life
    assert life.exits == ((10, 1), (20, 3), (30, 2**31 - 1 - 4))
    longer = SeenLife(slot("a", 1), replace(life, run_ns=90))
    kept = ExtrapolatedLifetimes.of([longer, cut_off(15, slot("a", 0), 10)], {})
    assert kept.life_of(slot("a", 0), POD).exits == life.exits
    assert goes_on_ns(seen_life(slot("a", 0), revisions[:3])) is not None
    assert goes_on_ns(SeenLife(slot("a", 0), replace(life, restarts_at_ns=(10,),
                                                     restart_counts=(3,)))) is None  # fmt: skip
