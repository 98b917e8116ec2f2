"""The version table of the CronJob and TTL controllers."""

from __future__ import annotations

import pytest
from msgspec.structs import fields, replace

from tests.support.cron_world import era
from tracekit.base.cron import Generation
from tracekit.versions.cronjob import TEXTS, Arithmetic, Controller, CronJobEra


@pytest.mark.parametrize(
    ("version", "generation"),
    [
        ("1.20.15", Arithmetic.LIST_ALL),
        ("1.21.0", Arithmetic.EQUAL_SPACING),
        ("1.24.17", Arithmetic.EQUAL_SPACING),
        ("1.25.11", Arithmetic.EQUAL_SPACING_ANCHORED),
        ("1.25.12", Arithmetic.WALK_NEAR_END),
        ("1.25.16", Arithmetic.WALK_NEAR_END),
        ("1.26.6", Arithmetic.EQUAL_SPACING_ANCHORED),
        ("1.26.7", Arithmetic.WALK_NEAR_END),
        ("1.26.11", Arithmetic.WALK_NEAR_END_FROM_NOW),
        ("1.27.3", Arithmetic.EQUAL_SPACING_ANCHORED),
        ("1.27.4", Arithmetic.WALK_NEAR_END),
        ("1.27.8", Arithmetic.WALK_NEAR_END_FROM_NOW),
        ("1.28.3", Arithmetic.WALK_NEAR_END),
        ("1.28.4", Arithmetic.WALK_NEAR_END_FROM_NOW),
        ("1.29.0", Arithmetic.WALK_NEAR_END_FROM_NOW),
    ],
)
def test_arithmetic_by_patch(version: str, generation: Arithmetic) -> None:
    assert era(version).arithmetic is generation


@pytest.mark.parametrize(
    ("version", "gates", "controller"),
    [
        ("1.11.0", {}, Controller.POLLING),
        ("1.20.0", {}, Controller.POLLING),
        ("1.20.0", {"CronJobControllerV2": True}, Controller.QUEUED),
        ("1.21.0", {}, Controller.QUEUED),
        ("1.21.0", {"CronJobControllerV2": False}, Controller.POLLING),
        ("1.22.0", {}, Controller.QUEUED),
    ],
)
def test_which_controller_runs(version: str, gates: dict, controller: Controller) -> None:
    assert era(version, **gates).controller is controller


def test_the_cron_library_changed_in_1_22() -> None:
    assert era("1.21.14").generation is Generation.GEN1
    assert era("1.22.0").generation is Generation.GEN3


@pytest.mark.parametrize("suffix", ["-gke.1254000", "+k3s1", "-eks-abc"])
def test_a_distribution_suffix_changes_nothing(suffix: str) -> None:
    plain, marked = era("v1.29.6"), era("v1.29.6" + suffix)
    assert replace(marked, version=plain.version) == plain


def test_every_text_sets_a_field_to_a_value_of_its_type() -> None:
    known = {f.name: f for f in fields(CronJobEra)}
    for text in TEXTS:
        assert isinstance(text.value, type(known[text.field].default))


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ("1.20.15", "invalid schedule"),
        ("1.21.14", "invalid schedule schedule"),
        ("1.22.0", "invalid schedule schedule"),
        ("1.22.17", "invalid schedule"),
        ("1.36.3", "invalid schedule"),
    ],
)
def test_a_text_that_came_and_went(version: str, text: str) -> None:
    assert era(version).invalid_text == text
