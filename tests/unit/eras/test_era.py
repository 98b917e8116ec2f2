"""Eras: behaviors and numbers per version, and what happens at the ends of the table."""

import pytest

from tracekit.base.errors import UnsupportedVersionError
from tracekit.versions import table
from tracekit.versions.behavior_releases import SHIPPED
from tracekit.versions.behaviors import Behavior, BehaviorFlags
from tracekit.versions.era import NEWEST, OLDEST, Era
from tracekit.versions.version import PATCH_MAX, branch_key

NS_PER_S = 1_000_000_000


def test_every_behavior_is_in_the_table_and_has_a_flag_of_its_name():
    assert list(SHIPPED) == list(Behavior)
    for behavior in Behavior:
        assert getattr(BehaviorFlags(frozenset({behavior})), behavior.name.lower())
        assert not getattr(BehaviorFlags(frozenset()), behavior.name.lower())


@pytest.mark.parametrize("behavior", list(Behavior), ids=lambda b: b.name.lower())
def test_a_boundary_names_its_branches_once_and_in_order(behavior):
    boundary = SHIPPED[behavior].boundary
    branches = [branch_key(name) for name, _ in boundary.first_patch]
    assert branches == sorted(set(branches))
    if boundary.onward is not None:
        assert all(branch <= branch_key(boundary.onward) for branch in branches)
    if boundary.gone is not None:
        assert boundary.onward is not None
        assert branch_key(boundary.onward) < branch_key(boundary.gone)
    assert SHIPPED[behavior].about
    assert SHIPPED[behavior].upstream


@pytest.mark.parametrize(
    ("behavior", "without", "with_it"),
    [
        (Behavior.DEADLINE_TIMER_REARMED_ON_JOB_UPDATE, "1.11.10", "1.12.0"),
        (Behavior.ON_FAILURE_LIMIT_ZERO_NEEDS_A_RESTART, "1.12.10", "1.13.0"),
        (Behavior.ON_FAILURE_COUNTS_PENDING_PODS, "1.14.6", "1.15.0"),
        (Behavior.NOTHING_TO_CREATE_KEEPS_EXPECTATIONS, "1.15.3", "1.16.7"),
        (Behavior.CREATE_TIMEOUT_IS_AN_ERROR, "1.17.0", "1.17.1"),
        (Behavior.CREATE_TIMEOUT_IS_AN_ERROR, "1.15.12", "1.16.7"),
        (Behavior.DELETE_OF_MISSING_POD_LOWERS_EXPECTATION, "1.17.11", "1.17.12"),
        (Behavior.COMPLETED_EVENT, "1.17.17", "1.18.2"),
        (Behavior.BACKOFF_LIMIT_COUNTS_FAILED_PODS, "1.19.12", "1.20.0"),
        (Behavior.DEADLINE_TIMER_REARMED_ON_EVERY_SYNC, "1.22.11", "1.22.12"),
        (Behavior.BACKOFF_LIMIT_IGNORES_ACTIVE_PODS, "1.24.15", "1.24.16"),
        (Behavior.STATUS_CONFLICT_REQUEUES_WITHOUT_ERROR, "1.26.0", "1.26.1"),
        (Behavior.STATUS_CONFLICT_REQUEUES_WITHOUT_ERROR, "1.28.0", "1.27.0"),
        (Behavior.STATUS_WRITE_KEEPS_RETRIES, "1.27.0", "1.26.1"),
        (Behavior.ORPHANS_WITHOUT_OWNER_LOSE_FINALIZER, "1.23.6", "1.23.7"),
        (Behavior.PODS_OF_FINISHED_JOBS_LOSE_FINALIZER, "1.24.0", "1.24.1"),
        (Behavior.FINISHED_JOB_RELEASES_ITS_PODS, "1.28.15", "1.29.0"),
        (Behavior.ORPHANS_OF_OTHER_KINDS_KEPT, "1.30.14", "1.31.0"),
        (Behavior.ORPHANS_FOUND_BY_SELECTOR, "1.31.14", "1.32.0"),
        (Behavior.DELETED_JOB_FORGETS_BACKOFF, "1.33.2", "1.33.3"),
        (Behavior.ACTIVE_KEPT_DURING_CREATION_BACKOFF, "1.36.2", "1.36.3"),
        (Behavior.ACTIVE_KEPT_DURING_CREATION_BACKOFF, "1.33.13", "1.34.10"),
        (Behavior.ONLY_FIRST_POD_FAILURE_DELAYS_SYNC, "1.24.0", "1.24.17"),
        (Behavior.ONLY_FIRST_POD_FAILURE_DELAYS_SYNC, "1.28.0", "1.27.0"),
        (Behavior.STATUS_WRITTEN_FROM_CACHED_REVISION, "1.22.17", "1.23.0"),
        (Behavior.ORPHAN_PODS_LOSE_FINALIZER, "1.21.14", "1.22.0"),
        (Behavior.ONLY_INDEXED_JOBS_PUT_INDEX_IN_NAMES, "1.22.9", "1.22.10"),
        (Behavior.CONDITION_UPDATE_RENEWS_PROBE_TIME, "1.24.17", "1.25.0"),
        (Behavior.FINISH_TIME_READ_FROM_POD_STATUS, "1.27.4", "1.27.5"),
        (Behavior.IGNORED_FAILURES_DELAY_REPLACEMENTS, "1.27.4", "1.27.5"),
        (Behavior.FINISH_TIME_COVERS_SIDECARS, "1.30.14", "1.31.0"),
        (Behavior.SUSPENDED_EMPTY_JOB_ENDS_WITHOUT_START, "1.32.6", "1.32.7"),
        (Behavior.RESUMED_START_TIME_ACCEPTED, "1.34.1", "1.34.2"),
        (Behavior.BACKOFF_FROM_POD_FINISH_TIMES, "1.26.15", "1.27.0"),
        (Behavior.MISSED_RUNS_REQUEUE_FROM_NOW, "1.25.16", "1.26.15"),
        (Behavior.ALREADY_EXISTS_RECOVERS, "1.36.4", "1.37.0"),
        (Behavior.ORPHAN_FINALIZER_RETRIED, "1.37.0", "1.37.1"),
        (Behavior.ORPHAN_FINALIZER_RETRIED, "1.36.4", "1.36.5"),
        (Behavior.ORPHAN_FINALIZER_RETRIED, "1.35.8", "1.35.9"),
        (Behavior.DELETED_JOB_FORGETS_EXPECTATIONS, "1.37.1", "1.37.2"),
        (Behavior.CLEANUP_PRECEDES_SCHEDULING, "1.24.17", "1.25.16"),
        (Behavior.POLLING_DELETES_IN_BACKGROUND, "1.13.0", "1.13.1"),
        (Behavior.COMPLETED_JOB_EVENT_SAYS_CONDITION, "1.30.14", "1.31.0"),
    ],
)
def test_a_behavior_turns_at_the_release_that_shipped_it(behavior, without, with_it):
    assert behavior not in Era.resolve(without)
    assert behavior in Era.resolve(with_it)
    assert getattr(Era.resolve(with_it).behaviors, behavior.name.lower())


@pytest.mark.parametrize(
    ("version", "name", "value"),
    [
        ("1.17.17", "queue_backoff_ns_base", 10 * NS_PER_S),
        ("1.27.16", "queue_backoff_ns_max", 360 * NS_PER_S),
        ("1.28.0", "queue_backoff_ns_base", NS_PER_S),
        ("1.28.0", "queue_backoff_ns_max", 60 * NS_PER_S),
        ("1.28.0", "pod_failure_backoff_ns_max", 600 * NS_PER_S),
        ("1.22.17", "sync_batch_period_ns", 0),
        ("1.23.17", "sync_batch_period_ns", NS_PER_S // 2),
        ("1.25.0", "sync_batch_period_ns", NS_PER_S),
        ("1.21.14", "uncounted_pods_max", None),
        ("1.36.0", "uncounted_pods_max", 500),
    ],
)
def test_numbers_are_those_of_the_release(version, name, value):
    assert getattr(Era.resolve(version).constants, name) == value


def test_the_newest_version_has_all_that_a_patch_release_changed():
    latest = Era.resolve(f"v{NEWEST.branch}.{PATCH_MAX}")
    assert Era.resolve(NEWEST).held_behaviors == latest.held_behaviors


def test_a_newer_version_takes_the_newest_rules_and_says_so():
    newer = f"v1.{NEWEST.minor + 1}.1"
    era = Era.resolve(newer)
    assert str(era.version) == newer
    assert era.basis.branch == NEWEST.branch
    assert f"rules of v{NEWEST.branch} are used" in " ".join(era.warnings)
    assert era.enabled_gates == Era.resolve(NEWEST).enabled_gates
    assert Era.resolve(NEWEST).warnings == ()


@pytest.mark.parametrize("version", ["1.10.13", "v0.9.0", "1.4"])
def test_a_version_below_the_oldest_known_one_is_refused(version):
    with pytest.raises(UnsupportedVersionError, match=r"older than v1\.11"):
        Era.resolve(version)


def test_a_distribution_suffix_changes_nothing():
    assert Era.resolve("v1.29.6-gke.1254000") == Era.resolve("1.29.6")


def test_eras_of_neighbours_differ_in_what_the_newer_one_changed():
    found = {d.name for d in table.differences(Era.resolve("1.19.16"), Era.resolve("1.20.0"))}
    assert found == {"backoff_limit_counts_failed_pods"}
    assert table.differences(Era.resolve("1.33.1"), Era.resolve("1.33.2")) == []


def test_every_known_minor_changed_something_that_the_table_tells():
    minors = {change.version.split(".")[1] for change in table.all_changes()}
    assert minors == {str(minor) for minor in range(OLDEST.minor, NEWEST.minor + 1)}


def test_changes_are_listed_oldest_first_and_none_is_above_the_newest_version():
    keys = [tuple(map(int, c.version[1:].split("."))) for c in table.all_changes()]
    assert keys == sorted(keys)
    assert keys[-1][:2] == (NEWEST.major, NEWEST.minor)
