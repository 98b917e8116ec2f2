"""Who holds a suspended Job back, by its labels and its owner."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tracekit.answers.holders import domain_of, holder_of
from tracekit.answers.trace_model import Job, State


def _job(labels: dict[str, str] | None = None, **row: Any) -> Job:
    empty = {"namespace": "ml", "name": "train", "owner_kind": None, "owner_name": None}
    return Job([State({**empty, "labels": json.dumps(labels or {}), **row})])


def test_nobody_holds_a_job_that_names_nobody() -> None:
    assert holder_of(_job()) is None
    assert holder_of(_job({"app": "train"}, owner_kind="CronJob", owner_name="nightly")) is None


@pytest.mark.parametrize(
    ("label", "system"),
    [("kueue.x-k8s.io/queue-name", "Kueue"), ("volcano.sh/queue-name", "Volcano")],
)
def test_a_label_names_the_queue(label: str, system: str) -> None:
    holder = holder_of(_job({label: "gpu"}))
    assert holder is not None
    assert (holder.name, holder.what) == (system, "queue gpu")
    assert "-n ml" in holder.look


def test_an_owner_goes_before_the_label_that_it_hands_on() -> None:
    holder = holder_of(
        _job({"kueue.x-k8s.io/queue-name": "gpu"}, owner_kind="JobSet", owner_name="big")
    )
    assert holder is not None
    assert holder.name == "JobSet big"


@pytest.mark.parametrize(
    ("finalizer", "domain"),
    [
        ("kueue.x-k8s.io/managed", "kueue.x-k8s.io"),
        ("example.com/lock", "example.com"),
        ("resources-finalizer.argocd.argoproj.io", "argocd.argoproj.io"),
        ("resources-finalizer.argocd.argoproj.io/background", "argocd.argoproj.io"),
        ("argocd.argoproj.io/hook-finalizer", "argocd.argoproj.io"),
        ("cleanup.shop.example.com", "shop.example.com"),
        ("example.com", "example.com"),
        ("notargocd.argoproj.io/x", "notargocd.argoproj.io"),
        ("foregroundDeletion", ""),
    ],
)
def test_a_finalizer_is_of_its_domain(finalizer: str, domain: str) -> None:
    assert domain_of(finalizer) == domain
