"""Numbers in texts from elsewhere, where Python's `int` and `isdigit` say other than Kubernetes."""

from __future__ import annotations

import pytest

from tracekit.base.kube.views import go_atoi
from tracekit.base.numbers import whole_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0), ("007", 7), (str(2**63 - 1), 2**63 - 1), (str(2**63), None), ("9" * 5000, None),
        ("", None), (None, None), ("²", None), ("\u0661\u0662", None), ("-1", None), ("+1", None),
        (" 1", None), ("1_0", None), ("1\n", None), ("0x1", None), ("1e3", None),
    ],
)  # fmt: skip
def test_a_whole_number_is_one_that_go_writes(text: str | None, number: int | None) -> None:
    assert whole_number(text) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("-7", -7), ("+7", 7), ("-0", 0), ("000000000000000000000000012", 12), ("00", 0),
        (str(2**63), None), ("9" * 5000, None), ("+", None), ("", None), ("²", None),
    ],
)  # fmt: skip
def test_atoi_is_of_64_bits(text: str, number: int | None) -> None:
    """strconv.Atoi reports a range error beyond int64; 5,000 digits were a crash."""
    assert go_atoi(text) == number
