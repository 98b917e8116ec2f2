"""Merging small segments into well-sized ones, so that a flush every second stays cheap to read.

The merged file is put in place first, the files that it covers are deleted afterwards. Readers
ignore covered files, so an interruption at any point leaves every row readable, and the next
compaction (or writer) clears away what was left over.

Only neighbours of like size are merged (each row is rewritten once per size class, not once per
flush), except by `Compactor.finish`, which a recorder asks for when it ends.

What is merged stays wide, quick to read and to merge again, until it cannot grow any more: then it
is cold, and written narrow (`format/narrow.py`) where that is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypedDict

import pyarrow as pa
from msgspec import Struct

from tracekit.base.collecting import collecting_rarely
from tracekit.trace.format.narrow_file import write_narrow_segment
from tracekit.trace.format.seal import DamageError
from tracekit.trace.format.segments import (
    SEGMENT_RAW_BYTES,
    SEGMENT_ROWS,
    Segment,
    all_segments,
    split_covered,
    write_segment,
)
from tracekit.trace.reading.files import SegmentFile

#: Neighbours of one size class that are merged together.
FAN_IN = 8
_LEVEL = 9
_NEVER_FITS = 1 << 62


class Place(TypedDict):
    """Where a merged segment goes."""

    first: int
    last: int
    identity: str | None
    derivation: bytes | None


class _Sized(Struct, frozen=True):
    segment: Segment
    raw_bytes: int
    #: Its typed columns are still to be filled.
    plain: bool = False
    narrow: bool = False
    #: What its seal names as its trace.
    identity: str | None = None
    #: By what the columns of its states were filled, if that is known.
    derivation: bytes | None = None


class Compactor:
    """Merges the segments of one trace; its caller holds the trace's lock."""

    def __init__(
        self,
        trace: Path,
        *,
        rows_max: int = SEGMENT_ROWS,
        raw_bytes_max: int = SEGMENT_RAW_BYTES,
        level: int = _LEVEL,
        narrow: bool | None = None,
    ) -> None:
        """`narrow`: the form of what cannot grow any more, and of what `finish` leaves.

        None: what is merged with something narrow becomes narrow, anything else stays wide.
        """
        self._trace = trace
        self._narrow = narrow
        self._rows_max = rows_max
        self._raw_bytes_max = raw_bytes_max
        self._level = level
        self._known: dict[Segment, _Sized] = {}
        #: Never merged: what is damaged must keep its broken checksum.
        self._damaged: set[Segment] = set()

    def step(self) -> bool:
        """One merge of neighbours of like size, if there are enough; whether there were."""
        live = self._live()
        for run in self._runs(live, lambda _: True)[:-1]:
            if self._is_unfinished(run):  # it cannot grow any more: give it its last form
                self._merge(run, final=True)
                return True
        classes = [(sized.segment.rows.bit_length() + 2) // 3 for sized in live]
        for size_class in sorted(set(classes)):
            for run in self._runs(live, lambda at, c=size_class: classes[at] <= c):  # type: ignore[misc]
                rows = [segment.rows for segment in run]
                # A large one among small ones would be rewritten for little.
                if len(run) >= FAN_IN and sum(rows) >= FAN_IN // 2 * max(rows):
                    self._merge(run)
                    return True
        return False

    def finish(self) -> int:
        """Merge all neighbours that fit together; the number of segments left."""
        for run in self._runs(self._live(), lambda _: True):
            if len(run) > 1 or self._is_unfinished(run):
                self._merge(run, final=True)
        return len(self._live())

    def _is_unfinished(self, run: Sequence[Segment]) -> bool:
        """Whether a segment of them is not yet in the form in which it is to stay."""
        sized = [self._known[segment] for segment in run if segment not in self._damaged]
        if any(one.plain for one in sized):
            return True
        return self._narrow is not None and any(
            one.narrow != self._narrow or one.identity is None for one in sized
        )

    def _live(self) -> list[_Sized]:
        live, covered = split_covered(all_segments(self._trace))
        for segment in covered:
            segment.path.unlink(missing_ok=True)
        self._known = {segment: self._known.get(segment) or self._look(segment) for segment in live}
        return list(self._known.values())

    def _runs(self, live: Sequence[_Sized], may: Callable[[int], bool]) -> list[list[Segment]]:
        """Neighbours that are allowed in and fit into one segment, as long as they can be."""
        runs: list[list[Segment]] = []
        open_run: list[Segment] = []
        rows = raw_bytes = 0
        for at, sized in enumerate(live):
            segment = sized.segment
            fits = (
                rows + segment.rows <= self._rows_max
                and raw_bytes + sized.raw_bytes <= self._raw_bytes_max
            )
            neighbour = bool(open_run) and open_run[-1].last + 1 == segment.first
            if open_run and not (fits and neighbour and may(at)):
                runs.append(open_run)
                open_run, rows, raw_bytes = [], 0, 0
            if may(at):
                open_run = [*open_run, segment]
                rows += segment.rows
                raw_bytes += sized.raw_bytes
        if open_run:
            runs.append(open_run)
        return runs

    def _identity(self) -> str | None:
        """What the seals of this trace name; None if no segment is sealed yet."""
        known = (sized.identity for sized in self._known.values())
        return next((identity for identity in known if identity is not None), None)

    def _merge(self, run: Sequence[Segment], *, final: bool = False) -> None:
        narrow = any(self._known[segment].narrow for segment in run)
        if final and self._narrow is not None:
            narrow = self._narrow
        rows = self._read(run)
        if rows is None:
            return
        derivations = {self._known[segment].derivation for segment in run}
        place: Place = {
            "first": run[0].first,
            "last": run[-1].last,
            "identity": self._identity(),
            "derivation": derivations.pop() if len(derivations) == 1 else None,
        }
        if narrow:
            with collecting_rarely():
                merged = write_narrow_segment(self._trace, rows, **place)
        else:
            merged = write_segment(self._trace, rows, level=self._level, **place)
        for segment in run:
            self._known.pop(segment, None)
            if segment != merged:  # a plain segment that was typed alone keeps its name
                segment.path.unlink(missing_ok=True)
        self._known[merged] = self._look(merged)

    def _look(self, segment: Segment) -> _Sized:
        if segment not in self._damaged:
            try:
                file = SegmentFile(segment)
                return _Sized(
                    segment,
                    file.raw_bytes,
                    plain=file.is_plain,
                    narrow=file.is_narrow,
                    identity=file.identity,
                    derivation=file.derivation,
                )
            except DamageError:
                self._damaged.add(segment)
        return _Sized(segment, _NEVER_FITS)

    def _read(self, run: Sequence[Segment]) -> pa.Table | None:
        """The rows of some neighbours; None if one of them turns out to be damaged."""
        parts = []
        for segment in run:
            try:
                parts.append(SegmentFile(segment).unsorted())
            except DamageError:
                self._damaged.add(segment)
                self._known.pop(segment, None)
                return None
        return pa.concat_tables(parts).unify_dictionaries()
