"""An account begins with what came of it."""

from __future__ import annotations

import pytest

from tests.sql.conftest import trace_path  # noqa: F401 - a fixture
from tracekit.api import Trace


@pytest.mark.parametrize(
    ("key", "opening"),
    [
        (
            "flaky",
            (
                "Failed after 1 min 12 s: 4 pods exited 1, more than backoffLimit 3 allows; "
                "1 min 8 s of it back-off."
            ),
        ),
        ("t-active-deadline/late", "Failed after 6 s: longer than activeDeadlineSeconds 5."),
        ("job/one", "Complete after 3 s: 1 pod succeeded."),
        ("idx-0-7t26c", "Complete after 7 s: 6 pods succeeded."),
        ("t-cronjobs/forbid", "4 due times: 4 started."),
    ],
)
def test_the_first_line_is_the_conclusion(trace_path, key: str, opening: str) -> None:  # noqa: F811
    trace = Trace(trace_path("v1.36.3-all"))
    narrative = trace.explain(key)
    assert narrative.opening == opening
    assert narrative.text().splitlines()[1] == opening


def test_back_off_of_indexes_is_no_part_of_the_duration(trace_path) -> None:  # noqa: F811
    trace = Trace(trace_path("v1.36.3-all"))
    (job,) = trace.sql(
        "select namespace, job, backoff_s from jobs"
        " where completion_mode = 'Indexed' and backoff_s >= 1 order by backoff_s desc limit 1"
    ).fetchall()
    opening = trace.explain(f"{job[0]}/{job[1]}").opening
    assert f"; {job[2]:.0f} s of back-off, summed over its indexes." in opening


def test_what_came_later_is_not_told_of_a_time_before(trace_path) -> None:  # noqa: F811
    narrative = Trace(trace_path("v1.36.3-all")).explain("flaky", at="2026-11-21T05:42:50Z")
    assert narrative.opening == ""
