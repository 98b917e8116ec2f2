"""The columns of states follow from their texts, and segments say by which derivation they did."""

from __future__ import annotations

import hashlib
import shutil

import orjson
import pytest

from tests.support.traces import TRACES
from tests.unit.trace.test_formats import golden_log
from tests.unit.trace.test_narrow import everything, narrow_of, odd_rows
from tracekit.trace.format import narrow
from tracekit.trace.format.derived import DERIVATION, derived_columns
from tracekit.trace.format.model import STATE_TYPES
from tracekit.trace.format.narrow import DERIVED
from tracekit.trace.format.segments import live_segments
from tracekit.trace.importers.source import LineSource
from tracekit.trace.importers.watch import WatchImporter
from tracekit.trace.reading.files import SegmentFile
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.compact import Compactor
from tracekit.trace.writing.writer import TraceWriter

#: What comes of the states below, by `DERIVATION`. Where this differs, columns are filled otherwise
#: than in segments that are there: raise `DERIVATION`, so that they are compared, and note it here.
OUTCOMES = {b"1": "161025b2a9c4efff910f2268e75147ea5227303966b9537ac67a1c54f5492493"}


@pytest.fixture(scope="module")
def states(tmp_path_factory):
    """A real trace in several segments."""
    return imported(
        tmp_path_factory.mktemp("states"), str(TRACES / "v1.36.3-all" / "watch.jsonl.zst")
    )


def imported(folder, log):
    WatchImporter(lambda: TraceWriter(folder / "t", segment_rows=300)).run([LineSource(log)])
    return folder / "t"


def test_a_change_of_what_columns_are_filled_with_is_another_derivation(states, tmp_path):
    log = tmp_path / "log"
    log.write_text("\n".join(x if isinstance(x, str) else x.decode() for x in golden_log()))
    digest = hashlib.sha256()
    for trace in (states, imported(tmp_path, str(log)), odd_rows(tmp_path / "odd")):
        rows = TraceReader(trace).table(("stream", "type", "raw"))
        texts = (rows[name].to_pylist() for name in rows.schema.names)
        found = derived_columns(*texts, DERIVED)
        for name in sorted(found):
            digest.update(orjson.dumps([name, found[name].to_pylist()]))
    assert OUTCOMES[DERIVATION] == digest.hexdigest()


def derived_rows(monkeypatch):
    """How many rows are compared with what follows from their texts, as they are."""
    rows = []
    whole = narrow.derived_columns

    def counted(streams, types, raws, columns):
        rows.append(len(raws))
        return whole(streams, types, raws, columns)

    monkeypatch.setattr(narrow, "derived_columns", counted)
    return rows


def test_states_of_a_segment_that_says_so_are_not_compared(states, tmp_path, monkeypatch):
    reader = TraceReader(states)
    types = reader.table(("type",))["type"].to_pylist()
    compared = derived_rows(monkeypatch)
    small = narrow_of(states, tmp_path / "n")
    others = sum(kind not in {state.value for state in STATE_TYPES} for kind in types)
    assert sum(compared) == others < len(types) / 10
    assert everything(small).equals(everything(states))


def test_rows_that_are_no_states_keep_what_no_text_tells(tmp_path):
    wide = odd_rows(tmp_path / "w")
    assert everything(narrow_of(wide, tmp_path / "n")).equals(everything(wide))


def test_merged_segments_say_what_all_of_them_said(states, tmp_path, monkeypatch):
    wide = tmp_path / "w"
    shutil.copytree(states, wide)
    Compactor(wide, rows_max=10_000).finish()
    (segment,) = live_segments(wide)
    assert SegmentFile(segment).derivation == DERIVATION
    compared = derived_rows(monkeypatch)
    Compactor(wide, narrow=True).finish()
    assert sum(compared) < segment.rows / 10


def test_what_another_release_filled_is_compared(states, tmp_path, monkeypatch):
    monkeypatch.setattr(narrow, "DERIVATION", b"a later one")
    rows = TraceReader(states).table(("seq",)).num_rows
    compared = derived_rows(monkeypatch)
    small = narrow_of(states, tmp_path / "n")
    assert sum(compared) == rows
    assert everything(small).equals(everything(states))
