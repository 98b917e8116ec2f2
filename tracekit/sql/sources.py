"""Which traces a query reads: from the words on a command line to names and files.

A word is the directory of a trace, its URL, or a pattern over either. Every trace gets a name for
the column `trace`: its directory's, made longer where two traces share one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from glob import glob, has_magic
from pathlib import Path

import pyarrow as pa

from tracekit.errors import TraceFormatError
from tracekit.trace.files import SegmentFile
from tracekit.trace.header import read_header
from tracekit.trace.model import HEADER_NAME, TraceHeader
from tracekit.trace.place import expand_url, is_url, local_trace
from tracekit.trace.segments import live_segments, missing_ranges


@dataclass(slots=True)
class Source:
    """One trace as a query reads it: the files that counted when it was opened."""

    name: str
    path: Path
    header: TraceHeader
    files: list[Path] = field(default_factory=list)
    #: Sentences about what of the trace is left out, because it cannot be read.
    problems: list[str] = field(default_factory=list)


def find_sources(words: Sequence[str | Path]) -> list[Source]:
    """The traces that the words name, each once, in that order.

    One among several whose header cannot be read has no files, and a problem that names it.
    """
    paths: dict[Path, Path] = {}
    for word in words:
        for path in _expand(str(word)):
            paths.setdefault(path.resolve(), path)
    names = _names(list(paths))
    sources: list[Source] = []
    unreadable: list[TraceFormatError] = []
    for resolved, path in paths.items():
        try:
            sources.append(_open(path, names[resolved]))
        except TraceFormatError as error:
            if not (path / HEADER_NAME).is_file():
                raise  # no trace at all: a slip in the command, not damage
            unreadable.append(error)
            problem = f"{error}; this trace is left out"
            sources.append(Source(names[resolved], path, TraceHeader(), problems=[problem]))
    if unreadable and len(unreadable) == len(sources):
        raise unreadable[0]
    return sources


def _expand(word: str) -> list[Path]:
    if is_url(word):
        return [local_trace(url) for url in expand_url(word)]
    if not has_magic(word) or Path(word).exists():
        return [Path(word)]
    names = sorted(glob(word))  # noqa: PTH207 - the word may be absolute
    found = [Path(name) for name in names if (Path(name) / HEADER_NAME).is_file()]
    if not found:
        raise TraceFormatError(
            f"{word} matches no trace: a trace is a directory with a {HEADER_NAME}, as "
            "`tracekit import` and `tracekit record` write it"
        )
    return found


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


def _open(path: Path, name: str) -> Source:
    source = Source(name, path, read_header(path))
    refresh(source)
    return source


def refresh(source: Source) -> None:
    """List the files anew and leave out those that cannot be opened, each with its sentence."""
    source.files.clear()
    source.problems.clear()
    segments = live_segments(source.path)
    for first, last in missing_ranges(segments):
        source.problems.append(
            f"{source.path} has lost its rows {first} to {last}: a file of its log directory is "
            "missing; restore it from a copy of the trace"
        )
    for segment in segments:
        try:
            SegmentFile(segment)
        except FileNotFoundError:
            continue  # compacted just now: the caller lists again when reading fails
        except (pa.ArrowException, OSError) as error:
            source.problems.append(
                f"{segment.path} is damaged ({_first_line(error)}): it is left out; restore it "
                "from a copy of the trace"
            )
            continue
        source.files.append(segment.path)


def drop_unreadable(source: Source, columns: Sequence[str]) -> int:
    """Read the files to their end and leave out those that break; how many that were."""
    broken = 0
    for segment in live_segments(source.path):
        if segment.path not in source.files:
            continue
        try:
            file = SegmentFile(segment)
            for group in range(file.row_groups):
                file.read(group, columns)
        except (pa.ArrowException, OSError) as error:
            broken += 1
            source.files.remove(segment.path)
            source.problems.append(
                f"{segment.path} is damaged ({_first_line(error)}): it is left out; restore it "
                "from a copy of the trace"
            )
    return broken


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0].rstrip(".")
