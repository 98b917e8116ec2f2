"""Amounts as Kubernetes writes them: `500m`, `8Gi`, `1e3`."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

#: Upstream: staging/src/k8s.io/apimachinery/pkg/api/resource, suffix.go. Exponents of more digits
#: are none that anybody means.
_QUANTITY: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<number>\d{1,40}(?:\.\d{0,20})?|\.\d{1,20})"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?\d{1,2}))?",
    re.ASCII,
)
_SUFFIXES: Final = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 10**3),
    **{name: Fraction(10 ** (3 * power)) for power, name in enumerate("kMGTPE", 1)},
    **{f"{name}i": Fraction(1 << 10 * power) for power, name in enumerate("KMGTPE", 1)},
}  # fmt: skip


def quantity(text: str) -> Fraction | None:
    """How much it is, exactly; None where it is no amount."""
    found = _QUANTITY.fullmatch(text.strip())
    if found is None:
        return None
    amount = Fraction(found["number"].rstrip("."))
    if found["suffix"]:
        amount *= _SUFFIXES[found["suffix"]]
    elif found["exponent"]:
        amount *= Fraction(10) ** int(found["exponent"])
    return -amount if found["sign"] == "-" else amount
