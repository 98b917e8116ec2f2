"""A pass of the polling controller: the order of its lists, and what ends it.

Unwitnessed by a trace that ships: a list leaves nothing in a watch, and no recorded cluster had
more than 500 Jobs under a polling controller.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.support.cron_pass import Cluster
from tests.support.cron_world import cron_job, era, job
from tracekit.base.kube.cronjob_views import CronJobView
from tracekit.ports.cronjob.sync_all import sync_all


def named(name: str, kept: int | None = None) -> CronJobView:
    return replace(cron_job(limits=(kept, None)), name=name, uid=f"uid of {name}")


@pytest.mark.parametrize("version", ["1.11.10", "1.14.10", "1.15.12", "1.20.15"])
def test_jobs_are_listed_before_cron_jobs_and_each_sync_reads_the_clock(version: str) -> None:
    cluster = Cluster((), (named("a"), named("b")))
    results = sync_all(cluster, era(version))
    assert results is not None
    assert len(results) == 2
    assert cluster.log == ["jobs 0", "cronjobs 0", "sync a", "now", "sync b", "now"]


def test_each_cron_job_gets_the_jobs_of_its_uid() -> None:
    ours = [job(f"a-{n}", owner_uid="uid of a", state="Complete") for n in range(5)]
    theirs = [job("b-1", owner_uid="uid of another a", state="Complete")]
    cluster = Cluster([*ours, *theirs], (named("a", 3), named("b", 0)))
    sync_all(cluster, era("1.11.10"))
    assert cluster.worlds["a"].deleted == ["a-0", "a-1"]
    assert cluster.worlds["b"].deleted == []


@pytest.mark.parametrize("version", ["1.11.10", "1.14.10", "1.20.15"])
def test_a_list_that_fails_ends_the_pass(version: str) -> None:
    given = {"jobs": (), "cron_jobs": (named("a"),)}
    cluster = Cluster(**given, failing_job_page=0)
    assert sync_all(cluster, era(version)) is None
    assert cluster.log == ["jobs 0"]
    cluster = Cluster(**given, failing_cron_job_page=0)
    assert not sync_all(cluster, era(version))
    assert cluster.log == ["jobs 0", "cronjobs 0"]


MANY = tuple(named(f"cj-{number:04d}") for number in range(501))


@pytest.mark.parametrize(("version", "synced"), [("1.13.12", 501), ("1.14.10", 0), ("1.15.0", 501)])
def test_more_than_one_page_stops_1_14(version: str, synced: int) -> None:
    results = sync_all(Cluster((), MANY), era(version))
    assert (results is None) is (synced == 0)
    assert len(results or ()) == synced


def test_more_than_500_jobs_stop_1_14_too() -> None:
    jobs = [job(f"j-{number}", owner=None) for number in range(501)]
    assert sync_all(Cluster(jobs, MANY[:1]), era("1.14.10")) is None
    assert sync_all(Cluster(jobs[:500], MANY[:1]), era("1.14.10")) is not None


@pytest.mark.parametrize(("version", "synced"), [("1.14.10", 0), ("1.15.0", 500)])
def test_a_later_page_that_fails_leaves_what_was_synced(version: str, synced: int) -> None:
    cluster = Cluster((), MANY, failing_cron_job_page=1)
    results = sync_all(cluster, era(version))
    assert len(results or ()) == synced
