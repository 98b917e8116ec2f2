"""Which pods a Job adopts, keeps and releases.

Upstream: pkg/controller/job/job_controller_test.go:TestGetPodsForJob and
pkg/controller/controller_ref_manager_test.go:TestClaimPods.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.fake_api import Bench, FakeApi
from tests.support.objects import LONG_AGO_NS, job, pod, rules
from tracekit.base.kube.views import JobView, PodView
from tracekit.ports.actions import Outcome
from tracekit.ports.job.claim import ClaimError, claim_pods

OTHER_LABELS = {"app": "other"}


def claim(
    the_job: JobView, given: list[PodView], api: FakeApi, *, add_finalizer: bool = True
) -> dict[str, bool]:
    """The claimed pods, and whether each has its finalizer."""
    claimed = claim_pods(the_job, given, api, add_finalizer=add_finalizer)
    return {found.name: found.has_tracking_finalizer for found in claimed}


def orphan(name: str, phase: str = "Running", **fields: Any) -> PodView:
    return pod(name, phase, owner=None, **{"finalizer": False, **fields})


def test_only_pods_of_the_job_and_pods_that_match_are_claimed() -> None:
    api = FakeApi()
    given = [
        pod("mine"),
        pod("of-another-job", owner="other-uid"),
        orphan("unlabelled", labels={}),
        pod("mine-without-finalizer", finalizer=False),
    ]
    assert claim(job(), given, api) == {"mine": True, "mine-without-finalizer": False}
    assert api.log == []


def test_a_matching_orphan_is_adopted_and_gets_the_finalizer() -> None:
    api = FakeApi()
    assert claim(job(), [orphan("stray")], api) == {"stray": True}
    assert api.adopted == [("stray", True)]


def test_without_tracking_an_orphan_is_adopted_as_it_is() -> None:
    api = FakeApi()
    assert claim(job(), [orphan("stray")], api, add_finalizer=False) == {"stray": False}
    assert api.adopted == [("stray", False)]


@pytest.mark.parametrize("phase", ["Pending", "Running", "Succeeded", "Failed"])
def test_orphans_are_adopted_whatever_their_phase(phase: str) -> None:
    assert claim(job(), [orphan("stray", phase)], FakeApi()) == {"stray": True}


def test_an_orphan_that_is_being_deleted_is_left_alone() -> None:
    api = FakeApi()
    assert claim(job(), [orphan("dying", deleted_ns=LONG_AGO_NS)], api) == {}
    assert api.log == []


def test_a_job_that_is_being_deleted_adopts_nothing_and_releases_nothing() -> None:
    api = FakeApi()
    given = [pod("mine"), orphan("stray"), pod("relabelled", labels=OTHER_LABELS)]
    assert claim(job(deleted=True), given, api) == {"mine": True}
    assert (api.log, api.adopt_checks) == ([], 0)


def test_a_pod_whose_labels_changed_is_released() -> None:
    api = FakeApi()
    given = [pod("mine"), pod("relabelled", labels=OTHER_LABELS)]
    assert claim(job(), given, api) == {"mine": True}
    assert api.released == ["relabelled"]


def test_a_job_that_is_gone_on_the_server_adopts_nothing_and_the_sync_fails() -> None:
    api = FakeApi(adoptable=False)
    with pytest.raises(ClaimError):
        claim(job(), [orphan("one"), orphan("two")], api)
    assert api.adopted == []
    assert api.adopt_checks == 1, "the live Job is read once per sync"


def test_the_live_job_is_not_read_where_nothing_is_adopted() -> None:
    api = FakeApi()
    claim(job(), [pod("mine"), orphan("other", labels=OTHER_LABELS)], api)
    assert api.adopt_checks == 0


ANSWERS = {
    "adopted": (Outcome.OK, {"stray": True, "mine": True}),
    "gone": (Outcome.NOT_FOUND, {"mine": True}),
    "changed in between": (Outcome.CONFLICT, None),
    "refused": (Outcome.REFUSED, None),
}


@pytest.mark.parametrize(("answer", "claimed"), ANSWERS.values(), ids=ANSWERS.keys())
def test_answers_to_an_adoption(answer: Outcome, claimed: dict[str, bool] | None) -> None:
    api = FakeApi(patch_answers={"stray": answer})
    given = [orphan("stray"), pod("mine")]
    if claimed is None:
        with pytest.raises(ClaimError):
            claim(job(), given, api)
    else:
        assert claim(job(), given, api) == claimed


@pytest.mark.parametrize(
    ("answer", "fails"),
    [(Outcome.OK, False), (Outcome.NOT_FOUND, False), (Outcome.REFUSED, True)],
)
def test_answers_to_a_release(answer: Outcome, fails: bool) -> None:
    api = FakeApi(patch_answers={"relabelled": answer})
    given = [pod("relabelled", labels=OTHER_LABELS)]
    if fails:
        with pytest.raises(ClaimError):
            claim(job(), given, api)
    else:
        assert claim(job(), given, api) == {}


def test_after_an_error_the_other_pods_are_still_claimed_and_then_the_sync_ends() -> None:
    api = FakeApi(patch_answers={"one": Outcome.REFUSED})
    bench = Bench.of(
        job(parallelism=3, completions=3), rules(), [orphan("one"), orphan("two")], api=api
    )
    assert bench.sync().error
    assert [name for name, _ in api.adopted] == ["one", "two"]
    assert api.puts == []
    assert api.created == []


def test_an_adopted_pod_counts_in_the_same_sync() -> None:
    """An orphan that has succeeded is adopted, noted, released from the finalizer, counted."""
    bench = Bench.of(job(completions=3), rules(), [pod("mine"), orphan("stray", "Succeeded")])
    bench.sync()
    assert bench.api.adopted == [("stray", True)]
    assert bench.status.succeeded == 1
    assert bench.api.finalizers_removed == ["stray"]


def test_an_adopted_pod_takes_a_place() -> None:
    bench = Bench.of(job(parallelism=2, completions=2), rules(), [orphan("a"), orphan("b")])
    bench.sync()
    assert bench.api.created == []
    assert bench.status.active == 2


def test_the_same_uid_decides_not_the_name() -> None:
    """A pod of a Job of the same name that was deleted and created again is not claimed."""
    bench = Bench.of(job(), rules(), [pod("left-over", owner="uid-of-the-first-demo")])
    bench.sync()
    assert len(bench.api.created) == 1
    assert bench.api.released == []
