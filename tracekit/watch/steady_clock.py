"""Receive times of a growing record as if the recorder's clock had never been set.

For how long something has been silent is a difference of two of them: a step between would be taken
for silence, or hide it. The recorder notes each step within a fifth of a second of it.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tracekit.judge.clocks import clock_notes
from tracekit.trace.format.model import CLOCKS, RowType

_NOTE_COLUMNS = ("seq", "recv_ns", "raw")
#: Those that the clock looks at.
CLOCK_COLUMNS = ("stream", "type", *_NOTE_COLUMNS)


class SteadyClock:
    """By how much the recorder's clock was set in all, and the time of the latest row without."""

    def __init__(self) -> None:
        self.set_ns = 0
        self.now_ns = 0

    def feed(self, rows: pa.Table) -> pa.Table:
        """Rows in order of arrival, with the times at which they would have been received."""
        parts, begun = [], 0
        for note in clock_notes(_noted(rows)):
            if note.step_ns:
                place = pc.index(rows["seq"], note.seq).as_py()
                parts.append(self._put(rows.slice(begun, place - begun)))
                begun = place
                self.set_ns += note.step_ns
                # What came between the step and its note had a time of neither.
                self.now_ns = note.recv_ns - self.set_ns
        parts.append(self._put(rows.slice(begun)))
        return pa.concat_tables(parts)

    def steady_ns(self, now_ns: int) -> int:
        """A present time of the recorder's clock."""
        return now_ns - self.set_ns

    def shown_ns(self, steady_ns: int) -> int:
        """A time for people: as the recorder's clock is set now."""
        return steady_ns + self.set_ns

    def _put(self, rows: pa.Table) -> pa.Table:
        steady = pc.subtract(rows["recv_ns"], self.set_ns)
        self.now_ns = max(self.now_ns, pc.max(steady).as_py() or 0)
        place = rows.schema.get_field_index("recv_ns")
        return rows.set_column(place, rows.schema.field(place), steady)


def _noted(rows: pa.Table) -> list[dict[str, object]]:
    mine = pc.and_(
        pc.equal(pc.cast(rows["stream"], pa.string()), CLOCKS),
        pc.equal(pc.cast(rows["type"], pa.string()), RowType.NOTE.value),
    )
    notes = rows.filter(pc.fill_null(mine, False)).select(_NOTE_COLUMNS)  # noqa: FBT003
    found: list[dict[str, object]] = notes.to_pylist()
    return found
