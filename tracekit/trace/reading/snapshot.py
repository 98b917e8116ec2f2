"""A trace at one moment: its header and its segments, opened, and what of it is not there.

Every reader begins here. The files of a snapshot stay open, so a recorder or a compaction may go on
beside it: each row is there once, whatever is merged or deleted meanwhile. A listing of a directory
that is being written to may miss a file that was merged while it ran, in its old shape and in its
new one; so rows count as lost only when a second listing shows the very same files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
from msgspec import Struct

from tracekit.base.errors import TraceFormatError
from tracekit.trace.format.header import read_header
from tracekit.trace.format.manifest import Manifest, read_manifest
from tracekit.trace.format.model import CLOCK_OFFSET, LOG_DIR, TraceHeader
from tracekit.trace.format.schema import NAMES
from tracekit.trace.format.seal import DamageError
from tracekit.trace.format.segments import Segment, all_segments, missing_ranges, split_covered
from tracekit.trace.reading.files import SegmentFile, Vouched, damaged_segment
from tracekit.trace.reading.known_limits import is_known_within, note_within
from tracekit.trace.reading.prefetch import bring
from tracekit.trace.stores.origin import Origin
from tracekit.trace.stores.place import origin_of

_TRIES = 1000


class Loss(Struct, frozen=True, order=True):
    """Rows that a trace should have and that cannot be had."""

    first: int
    last: int
    #: What is wrong and what to do, one sentence.
    sentence: str
    #: False: only missing between others, which leaves a gap as a recorder's pause does. True:
    #: something that is there cannot be believed, or nobody knows how much is gone.
    damage: bool


@dataclass(slots=True)
class Snapshot:
    """A trace as it was found."""

    path: Path
    header: TraceHeader
    files: list[SegmentFile]
    losses: list[Loss] = field(default_factory=list)
    #: Where the rest of it lies, if this is a copy.
    origin: Origin | None = None

    @property
    def word(self) -> str:
        """What names the trace on any machine that can read it."""
        return self.origin.url if self.origin is not None else str(self.path)

    def with_said(
        self, controller_flags: tuple[str, ...] | None, clock_offset_ns: int | None
    ) -> Snapshot:
        """The same, with these flags of the controller manager and this offset in its header.

        None: what it has.
        """
        header = self.header
        if controller_flags is not None:
            header = msgspec.structs.replace(header, controller_flags=controller_flags)
        if clock_offset_ns is not None:
            scope = {**header.scope, CLOCK_OFFSET: clock_offset_ns}
            header = msgspec.structs.replace(header, scope=scope)
        return self if header is self.header else replace(self, header=header)

    def verify(self, *, decode: bool = True) -> None:
        """Read all files to their end; those that prove damaged become losses.

        A file without checksums is decoded instead, if that is wanted.
        """
        self._bring()
        for file, error in self._damaged_files(decode=decode):
            self.drop(file, error)

    def decode(self) -> None:
        """Decode all files; those that cannot be become losses. Who writes a file can seal it."""
        for file in tuple(self.files):
            try:
                for group in range(file.row_groups):
                    file.read(group, NAMES)
            except DamageError as error:
                self.drop(file, error)

    def is_as_sealed(self) -> bool:
        """Whether all bytes fit their checksums, as far as there are any; changes nothing."""
        self._bring()
        try:
            return next(self._damaged_files(decode=False), None) is None
        except OSError:
            return False

    def _damaged_files(self, *, decode: bool) -> Iterator[tuple[SegmentFile, DamageError]]:
        """The files that prove damaged; a trace that has none is noted as within the limits."""
        key = self._content()
        counted = key is not None and is_known_within(key)
        sound = True
        for file in tuple(self.files):
            try:
                if decode or file.is_sealed:
                    file.verify(counted=counted)
            except DamageError as error:
                sound = False
                yield file, error
        if key is not None and sound and not counted:
            note_within(key)

    def _bring(self) -> None:
        bring((file, group) for file in self.files for group in range(file.row_groups))

    def _content(self) -> str | None:
        """What tells the content from any other; None where something has no checksums."""
        if not all(file.is_sealed for file in self.files):
            return None
        digest = hashlib.blake2b(digest_size=32)
        for file in self.files:
            digest.update(file.content_digest.encode())
        return digest.hexdigest()

    def drop(self, file: SegmentFile, error: Exception) -> Loss:
        """Do without a file that cannot be believed."""
        loss = _damaged(file.segment, error)
        self.files.remove(file)
        self.losses.append(loss)
        self.losses.sort()
        return loss

    @property
    def is_verifiable(self) -> bool:
        """Whether every file has checksums."""
        return self.header.sealed_from is not None and all(f.is_sealed for f in self.files)


def open_snapshot(trace: Path) -> Snapshot:
    """Look at a trace; `TraceFormatError` if its header or manifest cannot be believed."""
    header = read_header(trace)
    # Before the log is listed: what the manifest promises is in place by then.
    manifest = read_manifest(trace, sealed=header.sealed_from is not None) or Manifest()
    vouched, origin = Vouched(header.sealed_from, manifest.trace), origin_of(trace)
    for _ in range(_TRIES):
        segments = _listed(trace, manifest.rows)
        opened = _opened(segments, vouched, origin)
        if opened is not None:
            files, losses = opened
            losses += _lost(trace, segments, manifest.rows)
            return Snapshot(trace, header, files, sorted(losses), origin)
    raise _too_fast(trace)


def _opened(
    segments: list[Segment], vouched: Vouched, origin: Origin | None
) -> tuple[list[SegmentFile], list[Loss]] | None:
    """All of the segments opened, or nothing if one was merged away since they were listed."""
    files: list[SegmentFile] = []
    losses: list[Loss] = []
    for segment in segments:
        try:
            files.append(SegmentFile(segment, vouched, origin))
        except FileNotFoundError:
            for file in files:
                file.close()
            return None
        except DamageError as error:
            losses.append(_damaged(segment, error))
    return files, losses


def _listed(trace: Path, rows: int) -> list[Segment]:
    """The segments that count, from a listing that no merge fell into; `rows` must be there."""
    before: list[Segment] | None = None
    for _ in range(_TRIES):
        found = all_segments(trace)
        live, _covered = split_covered(found)
        if found == before or not (missing_ranges(live) or _end(live) < rows):
            return live
        before = found
    raise _too_fast(trace)


def _end(segments: list[Segment]) -> int:
    return segments[-1].last + 1 if segments else 0


def _lost(trace: Path, segments: list[Segment], rows: int) -> list[Loss]:
    losses = [
        Loss(
            first,
            last,
            f"{trace} has lost its rows {first} to {last}: a file of its {LOG_DIR} directory is "
            "missing; restore it from a copy of the trace",
            damage=False,
        )
        for first, last in missing_ranges(segments)
    ]
    end = _end(segments)
    if end < rows:
        what = f"its rows {end} to {rows - 1} and maybe more" if end else f"all its {rows:,} rows"
        sentence = (
            f"{trace} has lost {what}: the end of its {LOG_DIR} directory is missing; restore it "
            "from a copy of the trace"
        )
        losses.append(Loss(end, rows - 1, sentence, damage=True))
    return losses


def _damaged(segment: Segment, error: Exception) -> Loss:
    return Loss(segment.first, segment.last, damaged_segment(segment, error), damage=True)


def _too_fast(trace: Path) -> TraceFormatError:
    return TraceFormatError(
        f"{trace} changes too fast to be read: run again when its recorder is less busy"
    )
