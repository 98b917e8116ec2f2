"""Lives for pods that the record never had."""

from __future__ import annotations

from typing import Any

import pytest

from tracekit.cluster.pod_life import PodLife, Slot
from tracekit.worlds.filling import FilledLives
from tracekit.worlds.lives import SeenLife

POD: dict[str, Any] = {"metadata": {"uid": "p1"}}


def slot(
    uid: str, ordinal: int, index: int | None = None, attempt: int = 0, cron: str = ""
) -> Slot:
    """A place of a Job's pod; without an index its attempt is its ordinal."""
    return Slot("shop", uid, uid, cron, ordinal, index, ordinal if index is None else attempt)


def seen(run_ns: int, place: Slot, cut_off_ns: int | None = None) -> SeenLife:
    """A life that is known by its run time."""
    return SeenLife(place, PodLife(run_ns=run_ns), cut_off_ns)


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
        (slot("f", 0), "same template", 2),
        (slot("g", 0), "none", None),
    ],
)
def test_the_first_rule_that_finds_a_life(place: Slot, rule: str, run_ns: int | None) -> None:
    lives = FilledLives.of(LIVES, TEMPLATES)
    assert lives.life_of(place, POD).run_ns == run_ns
    assert lives.given["p1"].rule == rule
