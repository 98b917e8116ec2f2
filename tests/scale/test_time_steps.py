"""What a trace proves of its times is taken from columns: few steps of Python for each row."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.operations import operations
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.judge.clocks import timed_of
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.writer import TraceWriter

#: As dicts, whose times are looked at one by one, a row takes 204; as columns 142.
_STEPS_A_ROW = 170
_BEGIN_NS = 1_767_225_600 * NS_PER_S


def _trace(place: Path, rows: int) -> TraceReader:
    header = TraceHeader(kubernetes_version="v1.36.3")
    with TraceWriter(place, header, session={"source": "test"}) as writer:
        for row in range(rows):
            meta = {"name": f"p{row // 3}", "namespace": "a", "uid": f"u{row // 3}"}
            meta |= {"resourceVersion": str(row + 1), "creationTimestamp": "2026-01-01T00:00:00Z"}
            kind = ("ADDED", "MODIFIED", "DELETED")[row % 3]
            writer.append("pods", kind, _BEGIN_NS + row * NS_PER_S // 9, {"metadata": meta})
    return TraceReader(place)


@pytest.mark.full
def test_a_row_takes_few_steps(tmp_path: Path) -> None:
    few, many = (_trace(tmp_path / str(rows), rows) for rows in (150, 600))
    timed_of(few)  # what is done once a process is done now
    steps = [operations(lambda reader=reader: timed_of(reader)) for reader in (few, many)]
    assert steps[1] - steps[0] < _STEPS_A_ROW * 450, (steps[1] - steps[0]) / 450
