"""A row of the version table in words."""

from __future__ import annotations

from tracekit.versions.era import Era
from tracekit.versions.rows import Row, describe_row


def test_a_constant_that_changed_twice_is_told_of_the_change_between_the_two() -> None:
    row = Row("constant", "pod_failure_backoff_ns_max")
    first = describe_row(row, Era.resolve("v1.26.9"), Era.resolve("v1.27.4"))
    second = describe_row(row, Era.resolve("v1.27.4"), Era.resolve("v1.28.15"))
    assert first.upstream.endswith("DefaultJobBackOff, MaxJobBackOff")
    assert second.upstream.endswith("DefaultJobApiBackOff, DefaultJobPodFailureBackOff")
