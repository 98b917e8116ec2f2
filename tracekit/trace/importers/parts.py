"""What a command line leads to, by kind: which files are read, and which stand back for others.

A file that somebody names is read, or the import ends and says why not. What only lies in a folder
or an archive is left out where nothing can be made of it, and counted: it stops nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from tracekit.base.errors import TraceFormatError, UsageError
from tracekit.trace.format.model import HEADER_NAME
from tracekit.trace.importers.gather import Gathering
from tracekit.trace.importers.kinds import BY_NAME, Kind
from tracekit.trace.importers.kubectl_text import KUBECTL_TEXT
from tracekit.trace.importers.remote import is_remote_trace
from tracekit.trace.importers.source import STDIN, LineSource, shown_name
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.stores.place import is_url

KCM_LOG = "kcm-log"


@dataclass(slots=True)
class Part:
    """The files of one kind, or a trace that is there already."""

    kind: Kind | None
    sources: list[LineSource] = field(default_factory=list)
    trace: Path | None = None


class PartError(TraceFormatError):
    """Why nothing can be made of a part."""

    def __init__(self, part: Part, why: str) -> None:
        super().__init__(why)
        self.part = part


class Parts:
    """What a command line leads to, but for what turned out to be of no use."""

    def __init__(self, names: Sequence[str], others: Sequence[str], gathering: Gathering) -> None:
        words = (*names, *others)
        if words.count("-") > 1:
            raise UsageError("standard input can be read once only: name - once")
        self._named = frozenset(STDIN if n == "-" else shown_name(n) for n in words)
        self._gathering = gathering
        self._parts: dict[str, Part] = {}
        self._traces: list[Part] = []
        #: What was left out for what is beside it, or since nothing can be made of it.
        self._left_out: Counter[str] = Counter()
        self._examples: dict[str, str] = {}
        self._useless: list[tuple[Part, str]] = []
        for name, forced in chain(((n, True) for n in names), ((n, False) for n in others)):
            if _is_trace(name):
                self._traces.append(Part(None, trace=TraceReader(name).path))
                continue
            for kind, source in gathering.files(name, forced=forced):
                self._parts.setdefault(kind.name, Part(kind)).sources.append(source)

    def is_named(self, source: LineSource) -> bool:
        """Whether somebody named this very file."""
        return source.name in self._named

    def give_up(self, error: PartError) -> bool:
        """Leave a part out of which nothing can be made; whether something is left without it."""
        part = error.part
        if any(map(self.is_named, part.sources)) or STDIN in self._named:  # which is read once
            return False
        self._useless.append((part, str(error)))
        self._parts = {name: p for name, p in self._parts.items() if p.kind is not part.kind}
        return bool(self._parts)

    def chosen(self, looked_at_ns: int | None) -> list[Part]:
        """The parts that are read, sorted by how much each kind tells, the best first."""
        parts = dict(self._parts)
        if self._useless:  # some of these files were read meanwhile
            again = {n: [s.again() for s in p.sources] for n, p in parts.items()}
            parts = {name: Part(p.kind, again[name]) for name, p in parts.items()}
        self._left_out.clear()
        self._examples.clear()
        if not self._traces and parts.keys() == {KUBECTL_TEXT, KCM_LOG}:
            why = "that a controller manager wrote, which stand beside states only,"
            self._leave(parts.pop(KCM_LOG), why)
        if len(parts) + len(self._traces) > 1 and KUBECTL_TEXT in parts:
            why = "that kubectl prints for people, read only where nothing with states is beside,"
            self._leave(parts.pop(KUBECTL_TEXT), why)
        for part, error in self._useless:
            assert part.kind is not None  # noqa: S101 - nothing is made of a trace here
            self._leave(part, f"of the kind {part.kind.name} of no use ({error})")
        collected_ns = looked_at_ns or self._gathering.facts.collected_ns
        for part in parts.values():
            for source in part.sources:
                source.collected_ns = collected_ns
                if part.kind is BY_NAME[KUBECTL_TEXT] and collected_ns is None:
                    source.collected_ns = _written_ns(source.name)
        return sorted([*self._traces, *parts.values()], key=_rank)

    def remarks(self) -> Iterator[str]:
        """What was left out of folders and archives, as sentences."""
        gathered = self._gathering
        left_out = gathered.left_out + self._left_out
        for why, count in left_out.most_common():
            files = "1 file" if count == 1 else f"{count:,} files"
            example = gathered.examples.get(why) or self._examples[why]
            yield f"{files} {why} left out, for example {example}"

    def _leave(self, part: Part, why: str) -> None:
        """Leave out files of a kind for what is beside them, or is not."""
        for source in part.sources:
            self._left_out[why] += 1
            self._examples.setdefault(why, source.name)


def _written_ns(name: str) -> int | None:
    """When a file, or the archive that it is in, was written, Unix ns."""
    place = Path(name)
    found = next((path for path in (place, *place.parents) if path.is_file()), None)
    return found.stat().st_mtime_ns if found is not None else None


def _rank(part: Part) -> int:
    """How much a source tells, the best first; a trace made by an import as what it was made of."""
    if part.kind is not None:
        return part.kind.rank
    assert part.trace is not None  # noqa: S101 - a part is files of a kind, or a trace
    sessions = TraceReader(part.trace).header.sessions
    made_of = str(sessions[0].get("source") or "") if sessions else ""
    kind = BY_NAME.get(made_of.removeprefix("import "))
    return kind.rank - 1 if kind is not None else -1


def _is_trace(name: str) -> bool:
    if is_url(name):
        return is_remote_trace(name)
    return name != "-" and (Path(name) / HEADER_NAME).is_file()
