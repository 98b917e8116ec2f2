"""The table of findings and traces is what the code finds, and no clean trace has a divergence."""

from __future__ import annotations

import pytest

from tests.findings.conftest import Traces
from tests.findings.matrix import INCIDENTS, NAMES, counts, kept

#: Those that other tests of this folder diagnose anyway, and the small ones.
LOOKED_AT = (
    "v1.36.3-troubles", "v1.36.3-all", "v1.36.3-churn7", "v1.36.3-restart", "v1.30.14-all",
    *INCIDENTS,
)  # fmt: skip


def test_every_shipped_trace_is_in_the_table() -> None:
    assert list(kept()) == list(NAMES)


@pytest.mark.parametrize("name", LOOKED_AT)
def test_the_table_says_what_is_found(name: str, traces: Traces) -> None:
    assert kept()[name] == counts(traces.findings(name)), "run: python -m tests.findings.matrix"


def test_no_real_controller_is_said_to_break_its_rules() -> None:
    assert [name for name, found in kept().items() if any(i.startswith("TK1") for i in found)] == []
