"""The Jobs that fork: the record, the old rules in the model, the new rules in the model."""

from __future__ import annotations

import pytest

from tests.whatif.conftest import Import, answers, by_name
from tracekit.worlds.drawing import merge_difference


def test_pods_that_fail_together_make_other_pods(imported: Import) -> None:
    """Up to 1.27 the queue holds failures back one by one; later all are counted at once."""
    document = answers(imported("v1.25.4-twins"), "--kubernetes-version", "v1.36.3")
    job = by_name(document)["t-twin-failing-together/all-fail"]
    assert (job["verdict"], job["proved"]) == ("pods", False)
    assert job["recorded"]["pods"] == job["baseline"]["pods"] == 11
    assert job["target"]["pods"] == 10
    assert {"kind": "behavior", "name": "pod_failure_delays_sync"} in job["because"]
    assert document["calibrated"] >= 0.9


def test_the_delay_of_replacements_is_named(imported: Import) -> None:
    """7 s there, 34 s here: measured on real control planes of both releases."""
    document = answers(imported("v1.25.4-twins"), "--kubernetes-version", "v1.32.2")
    job = by_name(document)["t-twin-failing-together/twice"]
    assert job["verdict"] == "timing"
    assert job["recorded"]["finished_after_s"] == pytest.approx(7, abs=1)
    assert job["target"]["finished_after_s"] == pytest.approx(34, abs=2)
    assert any("backoff" in cause["name"] for cause in job["because"])


@pytest.mark.parametrize(
    ("left", "right"),
    [("v1.25.4-twins", "v1.32.2-twins"), ("v1.32.2-twins", "v1.25.4-twins")],
)
def test_what_is_told_came_true_on_a_real_control_plane(
    imported: Import, left: str, right: str
) -> None:
    version = right.removesuffix("-twins")
    told = by_name(answers(imported(left), "--kubernetes-version", version))
    real = by_name(answers(imported(right), "--kubernetes-version", version))
    names = ("ended", "pods", "succeeded", "failed")
    compared = [key for key in told if key in real and "target" in told[key]]
    assert len(compared) >= 10
    right_ones = [
        key
        for key in compared
        if [told[key]["target"][n] for n in names] == [real[key]["recorded"][n] for n in names]
    ]
    # Ten pods that fail within one second may be met one by one: a race that nobody can foretell.
    assert set(compared) - set(right_ones) <= {"t-twin-failing-together/all-fail"}


def test_a_life_that_was_cut_off_is_not_made_up(imported: Import) -> None:
    """The old rules killed the pod; what it would have done later nobody saw."""
    document = answers(imported("v1.25.4-twins"), "--kubernetes-version", "v1.36.3")
    job = by_name(document)["t-twin-on-failure/none"]
    assert (job["verdict"], job["reason"]) == ("unknowable", "censored")
    assert "target" not in job


def test_a_merge_patch_leads_from_one_to_the_other() -> None:
    old = {"a": 1, "b": {"c": [1], "d": 2}, "e": 3}
    new = {"a": 1, "b": {"c": [2], "d": 2}, "f": None}
    assert merge_difference(old, new) == {"b": {"c": [2]}, "e": None, "f": None}
    assert merge_difference(old, old) == {}
