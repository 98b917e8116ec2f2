"""Amounts as Kubernetes writes them, beside what upstream's resource package makes of them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tracekit.base.kube.quantities import quantity


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1", 1), ("500m", Fraction(1, 2)), ("8Gi", 8 << 30), ("1.5Ki", 1536), ("1e3", 1000),
        ("2E", 2 * 10**18), ("100u", Fraction(1, 10**4)), ("-1k", -1000), ("1.", 1), (".5", Fraction(1, 2)),
        ("12e-1", Fraction(6, 5)), ("", None), ("Gi", None), ("1 Gi", None), ("1ki", None), ("1e999", None),
    ],
)  # fmt: skip
def test_an_amount(text: str, amount: Fraction | None) -> None:
    assert quantity(text) == amount
