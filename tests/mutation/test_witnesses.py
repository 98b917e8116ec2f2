"""Turn each row of the version table over: its witness among the real traces contradicts it.

`witnesses.json` names a trace and an object per row; only that object is judged here, which takes a
moment. Whether a row that has none gets one is a search of minutes: python -m tests.mutation.witness.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from tests.mutation.mutants import mutants, rows
from tests.mutation.witness import Trial, Witness, load
from tracekit.versions.era import NEWEST, OLDEST, Era

WITNESSES = load()
_BY_TRACE: dict[str, dict[str, Witness]] = defaultdict(dict)
for _row, _witness in WITNESSES.items():
    if _witness is not None:
        _BY_TRACE[_witness.trace][_row] = _witness
#: What the table says and the port does not (a warning says so when it is on).
#: GenericWorkload is there for WorkloadWithJob, which needs it.
UNPORTED = {"gate WorkloadWithJob", "gate GenericWorkload"}


@pytest.fixture(scope="module", params=sorted(_BY_TRACE))
def trial(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    return Trial(request.param, tmp_path_factory.mktemp("mutation") / "trace")


def test_a_row_that_is_turned_over_is_contradicted_by_its_witness(trial: Trial) -> None:
    survivors = [
        row
        for row, witness in _BY_TRACE[trial.name].items()
        if not any(trial.contradicts(m, witness.object) for m in mutants(trial.era, row))
    ]
    assert survivors == []


def test_every_row_of_the_table_was_looked_for() -> None:
    assert list(WITNESSES) == rows(), "run: python -m tests.mutation.witness"


@pytest.mark.parametrize("row", rows())
def test_every_row_reaches_the_rules_of_some_release(row: str) -> None:
    """A row that changes nothing in any release is read by nobody: wire it or drop it."""
    minors = range(NEWEST.minor, OLDEST.minor - 1, -1)
    reached = any(True for minor in minors for _ in mutants(Era.resolve(f"1.{minor}.4"), row))
    assert reached is (row not in UNPORTED)


def test_most_rows_have_a_witness_and_no_fewer_than_there_were() -> None:
    assert sum(witness is not None for witness in WITNESSES.values()) >= 68


def test_a_store_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "witnesses.json"
    store.write_text('{"gate A": null, "gate B": {"trace": "t", "object": "ttl"}}')
    monkeypatch.setattr("tests.mutation.witness.STORE", store)
    assert load() == {"gate A": None, "gate B": Witness("t", "ttl")}
