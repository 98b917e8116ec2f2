"""Which traces a query reads: from the words on a command line to names and files.

A word is the directory of a trace, its URL, or a pattern over either. Every trace gets a name for
the column `trace`: its directory's, made longer where two traces share one.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tracekit.base.errors import TraceFormatError
from tracekit.sql.scope import EVERYTHING, Chosen
from tracekit.trace.format.model import HEADER_NAME, TraceHeader
from tracekit.trace.reading.files import SegmentFile
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.reading.snapshot import Snapshot, open_snapshot
from tracekit.trace.stores.place import is_url, known_copy, local_trace
from tracekit.trace.stores.stamps import named_traces
from tracekit.versions.overrides import AskedRules


@dataclass(slots=True)
class Source:
    """One trace as a query reads it: the rows that were there when it was opened."""

    name: str
    #: What names it on any machine.
    word: str
    path: Path
    #: None if not even the header could be read, or if nothing of it is wanted.
    snapshot: Snapshot | None
    #: Why there is no snapshot.
    unreadable: list[str] = field(default_factory=list)
    #: Whether all of it has been compared with its checksums.
    verified: bool = False
    #: Whether it was seen unopened that nothing of it is wanted.
    left_out: bool = False
    #: Why something that is computed from the trace is not there.
    notes: list[str] = field(default_factory=list)
    #: What there is to know about the rules that it was judged by.
    warnings: tuple[str, ...] = ()
    #: How the record as a whole contradicts these rules, once it was judged; empty: it does not.
    misfit: str = ""
    #: What the user calls it where that is another word: a file that was imported for one answer.
    typed: str = ""

    @property
    def called(self) -> str | None:
        """What a command calls it; None: it was never on a disk."""
        return self.typed or self.word or None

    def reader(self) -> TraceReader:
        """A reader of all of it, past what is damaged."""
        if self.snapshot is None:
            return TraceReader(self.path, on_damage="skip")
        if self.verified:
            return TraceReader(self.snapshot, on_damage="skip")
        header = self.snapshot.header
        return TraceReader(
            self.path,
            on_damage="skip",
            controller_flags=header.controller_flags,
            clock_offset_ns=header.clock_offset_ns,
        )

    @property
    def header(self) -> TraceHeader:
        """What is known of the trace as a whole."""
        return self.snapshot.header if self.snapshot is not None else TraceHeader()

    @property
    def files(self) -> list[SegmentFile]:
        """The files that are read."""
        return self.snapshot.files if self.snapshot is not None else []

    @property
    def problems(self) -> list[str]:
        """Sentences about what of the trace is left out, because it cannot be read."""
        losses = self.snapshot.losses if self.snapshot is not None else ()
        return [*self.unreadable, *(loss.sentence for loss in losses), *self.notes]

    @property
    def is_damaged(self) -> bool:
        """Whether what is left out is more than a gap."""
        if self.snapshot is None:
            return bool(self.unreadable)
        return any(loss.damage for loss in self.snapshot.losses)


def find_sources(
    words: Sequence[str | Path],
    chosen: Chosen = EVERYTHING,
    *,
    opened: bool = True,
    rules: AskedRules | None = None,
) -> list[Source]:
    """The traces that the words name, each once, in that order.

    One among several whose header cannot be read has no files, and a problem that names it. Those
    of which nothing is chosen are not opened, and none is if their rows are not wanted.
    The flags and the clock's offset of `rules` stand in for what the headers say.
    """
    traces: dict[Path, str] = {}
    for word in words:
        for trace in named_traces(str(word)):
            traces.setdefault(Path(os.path.realpath(_path(trace))), trace)
    names = _names(list(traces))
    left_out = chosen.left_out(list(traces.values()))
    sources: list[Source] = []
    unreadable: list[TraceFormatError] = []
    for resolved, trace in traces.items():
        name, path = names[resolved], _path(trace)
        if trace in left_out or not opened:
            sources.append(Source(name, trace, path, None, left_out=trace in left_out))
            continue
        path = local_trace(trace)
        try:
            snapshot = _open(path, chosen, rules or AskedRules())
            sources.append(Source(name, trace, path, snapshot, verified=not chosen.is_part))
        except TraceFormatError as error:
            if not (path / HEADER_NAME).is_file():
                raise  # no trace at all: a slip in the command, not damage
            unreadable.append(error)
            problem = f"{error}; this trace is left out"
            sources.append(Source(name, trace, path, None, [problem]))
    if unreadable and len(unreadable) == len(sources):
        raise unreadable[0]
    return sources


def _path(trace: str) -> Path:
    """Where it lies, or its copy will."""
    return known_copy(trace) if is_url(trace) else Path(trace)


def _names(paths: Sequence[Path]) -> dict[Path, str]:
    """The shortest ends of the paths that tell them apart."""
    names = {path: path.name or str(path) for path in paths}
    for depth in range(2, 64):
        counts = Counter(names.values())
        twice = [path for path in paths if counts[names[path]] > 1]
        if not twice:
            break
        for path in twice:
            names[path] = "/".join(path.parts[-depth:])
    return names


def _open(path: Path, chosen: Chosen, rules: AskedRules) -> Snapshot:
    said = rules.controller_flags, rules.clock_offset_ns
    snapshot = open_snapshot(path).with_said(*said)
    if not chosen.is_part:  # else what is chosen is verified as it is read
        # Before DuckDB reads any of it: it knows nothing of checksums.
        snapshot.verify(decode=False)
    return snapshot
