"""The churn generator: a seed is the whole truth about what will be done."""

from unittest.mock import Mock

import pytest

from tests.e2e.churn import TAIL_SECONDS, timetable
from tests.e2e.scene import Surroundings


def around(*, seed: int = 1, minor: int = 36, jobs: int = 60) -> Surroundings:
    return Surroundings(
        admin=Mock(),
        alice=Mock(),
        minor=minor,
        gates={},
        seconds=180,
        seed=seed,
        churn_jobs=jobs,
    )


def outline(surroundings: Surroundings) -> list[tuple[float, str]]:
    return [(act.at, act.name) for act in timetable(surroundings)]


def test_same_seed_same_acts() -> None:
    assert outline(around(seed=5)) == outline(around(seed=5))
    assert outline(around(seed=5)) != outline(around(seed=6))


def test_every_job_is_created_once_and_before_the_tail() -> None:
    acts = outline(around(jobs=80))
    assert len({name for _, name in acts}) == 80
    assert min(at for at, _ in acts) >= 0
    created = {name: min(at for at, other in acts if other == name) for _, name in acts}
    assert max(created.values()) <= 180 - TAIL_SECONDS


@pytest.mark.parametrize(
    ("minor", "absent"),
    [(20, "idx"), (25, "policy"), (28, "per-index"), (28, "replace"), (30, "success")],
)
def test_an_old_version_gets_no_kind_that_it_does_not_know(minor: int, absent: str) -> None:
    names = [name for _, name in outline(around(minor=minor, jobs=300))]
    assert not [name for name in names if name.endswith(f"-{absent}")]
    newest = [name for _, name in outline(around(minor=36, jobs=300))]
    assert [name for name in newest if name.endswith(f"-{absent}")]
