"""The face of the importers: files of any kind, alone or together, become one trace."""

from __future__ import annotations

import dataclasses
import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tracekit.base.collecting import collecting_rarely
from tracekit.base.coverage import Scope
from tracekit.base.errors import TraceFormatError, UsageError
from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.trace.format.header import write_header
from tracekit.trace.format.model import HEADER_NAME, STATELESS, STREAM_KINDS, TraceHeader
from tracekit.trace.importers.assemble import write_rows
from tracekit.trace.importers.combine import combine, joined_header
from tracekit.trace.importers.facts import Version
from tracekit.trace.importers.gather import Gathering
from tracekit.trace.importers.kinds import BY_NAME, LineMaker, Reader, recognise, wrong_kind
from tracekit.trace.importers.kubectl import CUT_LIST, CUT_OBJECT, MANIFESTS
from tracekit.trace.importers.parts import Part, PartError, Parts
from tracekit.trace.importers.report import ImportResult
from tracekit.trace.importers.source import LineSource, in_command
from tracekit.trace.importers.watch import Mapped, Source, WatchImporter
from tracekit.trace.importers.watchdog import EARLIER, UNTIMED
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.placing import placed, unwritable
from tracekit.trace.writing.writer import TraceWriter

#: From this rank on a kind stands beside a record only, and may have nothing to add to it.
_BESIDE_ONLY = 9

Advance = Callable[[int], None]

#: The zstd level of what an import writes: the highest whose search is not lazy (upstream: zstd
#: lib/compress/clevels.h). The writer's own takes an eighth more CPU in all, for 7 % fewer bytes;
#: who wants few bytes has `tracekit compact`.
_LEVEL = 5
#: Lists of bundles are small and of memory a block takes five times its size.
_MADE_BYTES = 2 * 1024 * 1024
#: What is packed is nothing for the commands that read manifests.
_PACKED = frozenset({".gz", ".bz2", ".xz", ".zst"})


@dataclass(slots=True)
class ImportRequest:
    """What is to be imported, and into what."""

    names: Sequence[str]
    target: Path
    header: TraceHeader = field(default_factory=TraceHeader)
    #: The kind of all files; None: recognise each.
    kind: str | None = None
    #: Further files or traces of the same cluster.
    others: Sequence[str] = ()
    #: Told of bytes that were read.
    advance: Advance = lambda _: None
    #: What `map` does, for who has other processes to do it in, with its files in a folder.
    mapped_in: Callable[[Path], Mapped] = lambda _: map
    #: What lists that do not say it asked for.
    scope: Scope | None = None
    #: When it was printed, for what has no receive times; None: as it or its bundle tells.
    looked_at_ns: int | None = None


def import_files(request: ImportRequest) -> list[ImportResult]:
    """Write the trace beside its place and rename it, so that what has the name is whole."""
    target = request.target
    try:
        with placed(target, "importing") as place, collecting_rarely():
            return _import(request, place.parent)
    except OSError as error:
        raise unwritable(target, error) from error


def _import(request: ImportRequest, partial: Path) -> list[ImportResult]:
    gathering = Gathering(partial / "members", request.advance, request.kind)
    parts = Parts(request.names, request.others, gathering)
    version = gathering.facts.version
    request = _with_version(request, version)
    facts = []
    if version is not None and version.text == request.header.kubernetes_version:
        facts = [f"the cluster's version, {version.text}, is that of {version.said_by}"]
    first: PartError | None = None
    while True:
        try:
            return _attempt(request, parts, facts, partial)
        except PartError as error:
            first = first or error
            if not parts.give_up(error):
                raise first from error
            for made in ("trace", "scratch", *(f"part-{n}" for n in range(len(BY_NAME)))):
                shutil.rmtree(partial / made, ignore_errors=True)


def _attempt(
    request: ImportRequest, parts: Parts, facts: Sequence[str], partial: Path
) -> list[ImportResult]:
    """Import what the files are that are of use as far as is known.

    Raises:
        PartError: Nothing can be made of those of a kind.
    """
    chosen = parts.chosen(request.looked_at_ns)
    remarks = [*parts.remarks(), *facts]
    results: list[ImportResult] = []
    traces: list[Path] = []
    alone = len(chosen) == 1
    if alone and chosen[0].trace is not None:
        raise _only_a_trace(chosen[0].trace, remarks)
    for number, part in enumerate(chosen):
        if part.trace is not None:
            traces.append(part.trace)
            continue
        place = partial / ("trace" if alone else f"part-{number}")
        assert part.kind is not None  # noqa: S101 - it is no trace, so it has files of a kind
        result = ImportResult(part.kind.name, beside=not alone, scope=request.scope)
        result.beside_ns = None if alone else _span_ns(traces)
        result.looked_ns = request.looked_at_ns
        try:
            _one(part, place, partial / "scratch", request, parts, result)
        except TraceFormatError as error:
            raise PartError(part, str(error)) from error
        result.remarks += remarks
        remarks = []
        _tell(place, result)
        results.append(result)
        traces.append(place)
    if not alone:
        results.append(_combined(request, traces, partial / "trace"))
    return results


def _only_a_trace(trace: Path, remarks: Sequence[str]) -> UsageError:
    """What is said where nothing is put beside a trace."""
    name = shlex.quote(str(trace))
    whys = "".join(f" ({remark})" for remark in remarks[:1])
    return UsageError(
        f"{trace} is a trace already, and nothing is to be put beside it{whys}: `tracekit info "
        f"{name}` and every other verb reads it as it is, `tracekit import {name} --with FILE -o "
        "TRACE` adds what a file has"
    )


def _with_version(request: ImportRequest, version: Version | None) -> ImportRequest:
    """The request, with the cluster's version if the files told it and nobody else did."""
    if version is None or request.header.kubernetes_version is not None:
        return request
    header = replace(request.header, kubernetes_version=version.text)
    return dataclasses.replace(request, header=header)


def _span_ns(traces: Sequence[Path]) -> tuple[int, int] | None:
    """When what these traces show begins and ends."""
    streams = [stream for trace in traces for stream in TraceReader(trace).streams()]
    first = [s.first_ns for s in streams if s.first_ns]
    last = [s.last_ns for s in streams if s.last_ns]
    return (min(first), max(last)) if first and last else None


def _one(
    part: Part,
    place: Path,
    scratch: Path,
    request: ImportRequest,
    parts: Parts,
    result: ImportResult,
) -> None:
    """Import the files of one kind."""
    kind, header = part.kind, request.header
    assert kind is not None  # noqa: S101 - the caller looked
    session = {"source": f"import {kind.name}"}
    if kind.reader is None:
        _watch(part, place, scratch, request, result)
        return
    reader = kind.reader(scratch, result)
    _read(reader, part, parts, result)
    rows = reader.rows()
    first = next(rows, None)
    if first is None and kind.rank < _BESIDE_ONLY:
        raise TraceFormatError(
            f"{', '.join(s.name for s in part.sources[:3])} holds nothing about Jobs, CronJobs or "
            "Pods: name the log of the cluster and time that you look for"
        )
    if header.kubernetes_version is None:
        header = replace(header, kubernetes_version=reader.kubernetes_version)
    if not header.controller_flags:
        flags = tuple(f"--{name}={value}" for name, value in result.controller_flags.items())
        header = replace(header, controller_flags=flags)
    with TraceWriter(place, header, session=session, level=_LEVEL) as writer:
        write_rows(writer, chain(() if first is None else (first,), rows), result)
        writer.close(compact=True)
        result.note_written(writer.next_seq, writer.unread)


def _read(reader: Reader, part: Part, parts: Parts, result: ImportResult) -> None:
    """Read the files of a kind; those in folders and archives of which nothing can be are left."""
    useless: list[tuple[LineSource, TraceFormatError]] = []
    assert part.kind is not None  # noqa: S101 - the caller looked
    for source in part.sources:
        before = _taken(result)
        why: TraceFormatError | None = None
        try:
            reader.read(source)
        except TraceFormatError as error:
            if _taken(result) != before:
                raise
            why = error
        if source.problem is not None:
            result.problems[f"{source.name} is cut off: {source.problem}"] += 1
        if _taken(result) == before:
            why = why or wrong_kind(source.again(), part.kind, result.problems)
            if parts.is_named(source):
                raise why
            useless.append((source, why))
    if len(useless) == len(part.sources):
        raise useless[0][1]
    if useless:
        example = useless[0][1]
        what = (
            f"files that look like {part.kind.name} and are not, left out, for example: {example}"
        )
        result.problems[what] += len(useless)


def _watch(
    part: Part, place: Path, scratch: Path, request: ImportRequest, result: ImportResult
) -> None:
    """Import a watch log, or what can be made into one."""
    kind, header = part.kind, request.header
    assert kind is not None  # noqa: S101 - the caller looked
    session = {"source": f"import {kind.name}"}
    maker = kind.lines(result) if kind.lines is not None else None
    sources: list[Source] = list(part.sources)
    if maker is not None:
        sources = [_Made(source, maker) for source in part.sources]
        sources.append(_Made(None, maker))
    importer = WatchImporter(
        lambda: TraceWriter(place, header, session=session, level=_LEVEL),
        result,
        request.mapped_in(scratch / "blocks"),
        may_lack_times=maker is not None,
    )
    try:
        importer.run(sources)
    finally:
        importer.abandon()
    if maker is None:
        return
    if not result.rows:
        raise _nothing_kept(part, result)
    for stream in STREAM_KINDS:
        if not result.streams[stream]:
            result.not_recorded[stream] = f"{kind.name} sources have what was asked for only"
    if header.kubernetes_version is None and maker.kubernetes_version is not None:
        written = TraceReader(place).header
        write_header(place, replace(written, kubernetes_version=maker.kubernetes_version))
    if maker.guessed:
        for of_log in (EARLIER, UNTIMED):  # nothing was received at these times
            result.problems.pop(of_log, None)
        collected_ns = part.sources[0].collected_ns
        has = "the latest that an object tells"
        if collected_ns is not None:
            has = f"the end of the collection, {format_rfc3339(collected_ns)}"
        result.times = f"the source has no receive times: each row has {has}"


def _nothing_kept(part: Part, result: ImportResult) -> TraceFormatError:
    """What is said of files of a kind that hold nothing that a trace keeps."""
    assert part.kind is not None  # noqa: S101 - the caller looked
    first = part.sources[0]
    if not result.shapes or recognise(first.again()) is not part.kind:
        return wrong_kind(first.again(), part.kind)
    rest = f" and {len(part.sources) - 1:,} more" if len(part.sources) > 1 else ""
    for cut in (CUT_LIST, CUT_OBJECT):
        if result.problems[cut]:
            return TraceFormatError(f"{first.name} has {cut}")
    if result.problems[MANIFESTS]:
        return _manifests_only(part, result)
    if len(result.refusals) == result.problems.total():
        return TraceFormatError(f"{first.name} {result.refusals[0].summary}")
    kinds = ", ".join(STREAM_KINDS.values())
    whys = "; ".join(problem for problem, _ in result.problems.most_common(3))
    return TraceFormatError(
        f"{first.name}{rest} has none of the kinds that a trace keeps ({kinds})"
        + (f": {whys}" if whys else "")
        + "; `kubectl get cronjobs,jobs,pods,events -A -o json` prints a file that has them"
    )


def _manifests_only(part: Part, result: ImportResult) -> TraceFormatError:
    """What is said of files in which nothing but manifests is."""
    name = part.sources[0].name
    plain = "FILE" if Path(name).suffix in _PACKED else in_command(name)
    problems = [(what, n) for what, n in result.problems.most_common() if what != MANIFESTS]
    beside = "".join(f"; {n:,} {what}" for what, n in problems[:2] if what.endswith("left out"))
    cron_jobs = result.shapes["manifest in cronjobs"]
    todo = (
        "name what `kubectl get cronjobs,jobs,pods,events -A -o json` prints, which says what was"
    )
    if cron_jobs or result.shapes["manifest in jobs"]:
        todo = f"`tracekit simulate --workload {plain} -o TRACE` runs them"
    if cron_jobs:
        todo += f", `tracekit cron lint {plain}` reads their schedules"
    return TraceFormatError(
        f"{name} has manifests only, which say what should be and not what was: what a server sets "
        "(uid, resourceVersion, creationTimestamp, a status) is missing "
        f"(objects: {result.problems[MANIFESTS]:,}{beside}); {todo}"
    )


class _Made:
    """A source of watch log lines that are made of another file, or of all (None)."""

    may_be_empty = True
    has_bytes = False

    def __init__(self, source: LineSource | None, maker: LineMaker) -> None:
        self.name = source.name if source is not None else "all files together"
        self.fragment = b""
        self._source, self._maker = source, maker

    @property
    def problem(self) -> str | None:
        """How the file ended too early, if it did."""
        return self._source.problem if self._source is not None else None

    def blocks(self, size: int) -> Iterator[bytes]:
        """The lines, some at a time."""
        held: list[bytes] = []
        held_bytes = 0
        size = min(size, _MADE_BYTES)
        maker, source = self._maker, self._source
        for line in maker.lines(source) if source is not None else maker.rest():
            held.append(line)
            held_bytes += len(line)
            if held_bytes >= size:
                yield b"\n".join(held)
                held, held_bytes = [], 0
        if held:
            yield b"\n".join(held)


def _taken(result: ImportResult) -> int:
    return sum(result.shapes.values())


def _tell(place: Path, result: ImportResult) -> None:
    """Put what was found and lost into the trace itself."""
    reader = TraceReader(place)
    streams = {
        name: {"recorded": False, "reason": reason} for name, reason in result.not_recorded.items()
    }
    last = {**reader.header.sessions[-1], "report": result.document()}
    write_header(
        place,
        replace(
            reader.header,
            sessions=(*reader.header.sessions[:-1], last),
            streams={**reader.header.streams, **streams},
            scope={**reader.header.scope, **_limits(result)},
        ),
    )


def _limits(result: ImportResult) -> dict[str, str]:
    """What the source as a whole does not tell, as it stands in the header's scope."""
    reported = {
        "times": result.times,
        "unlisted": result.unlisted,
        STATELESS: result.stateless,
    }
    return {name: why for name, why in reported.items() if why}


def _combined(request: ImportRequest, traces: Sequence[Path], place: Path) -> ImportResult:
    readers = [TraceReader(trace) for trace in traces]
    result = ImportResult("combined")
    headers = [reader.header for reader in readers]
    header = replace(
        joined_header(request.header, readers),
        # The rows are the best source's first of all: what it did not watch is not all there.
        scope={k: v for k, v in headers[0].scope.items() if k not in ("times", "unlisted")},
    )
    with TraceWriter(place, header, session={"source": "import combined"}) as writer:
        found = combine(writer, readers)
        writer.close(compact=True)
        result.rows = writer.next_seq
    if all(h.scope.get("unlisted") for h in headers):
        header = replace(header, scope={**header.scope, "unlisted": headers[0].scope["unlisted"]})
    if not found.timed:
        header = replace(header, scope={**header.scope, "times": headers[0].scope["times"]})
    written = TraceReader(place).header  # as its writer sealed it
    write_header(
        place,
        replace(
            written,
            scope=header.scope,
            sessions=(*header.sessions, _session(found)),
        ),
    )
    result.remarks.append(
        f"{found.shared:,} revisions were in several sources, {found.named:,} of them learned who "
        f"wrote them, {found.added:,} rows came from one of the lesser sources only"
    )
    result.streams.update({s.stream: s.rows for s in TraceReader(place).streams() if s.stream})
    return result


def _session(found: Any) -> dict[str, Any]:
    report = {"shared": found.shared, "named": found.named, "added": found.added}
    return {"source": "import combined", "first_seq": 0, "report": report}


def check_output(target: Path, *, force: bool) -> None:
    """Refuse to overwrite; even with --force only a trace is ever replaced."""
    if not os.path.lexists(target):
        return
    if not (target / HEADER_NAME).is_file():
        raise UsageError(f"{target} exists and is not a trace: choose another name for the output")
    if not force:
        raise UsageError(f"{target} exists: choose another name, or add --force to replace it")
