"""Files out of what a command line names: files, folders, archives and what is in them.

A folder or an archive is taken as it comes: what holds nothing to import is left out and counted,
and nothing in it stops an import. No link is followed and no member of an archive is written under
its own name, so nothing outside is read or written.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from tracekit.base.errors import TraceFormatError
from tracekit.trace.importers.archives import BrokenArchiveError, Member, archive_errors
from tracekit.trace.importers.facts import Facts
from tracekit.trace.importers.kinds import BY_NAME, Kind, concerns, flaw, recognise, without_streams
from tracekit.trace.importers.remote import remote_files
from tracekit.trace.importers.sample import SAMPLE_BYTES, ZIP_MAGIC
from tracekit.trace.importers.source import LineSource, in_command
from tracekit.trace.importers.strangers import office
from tracekit.trace.stores.place import is_url

#: Each takes 0.2 ms to look at, whatever it holds.
_ENTRIES_MAX = 100_000
#: Counts an entry of an archive, and refuses the archive when there are too many.
_Count = Callable[["LineSource"], None]
#: What an archive holds: its name, and its content; None of what is no plain file.
_Member = tuple[str, BinaryIO | None]
#: Unpacked bytes of one archive, and those of its files that are kept beside the output.
_ARCHIVE_BYTES_MAX = 256 * 1024**3
_KEPT_BYTES_MAX = 32 * 1024**3
#: An archive in an archive is opened, one in that is not.
_NESTED_MAX = 2
_TAR_MAGIC = slice(257, 262)
_TAR_SUM = slice(148, 156)
_TAR_BLOCK = 512
#: A choice: what one file in a tar may have of headers, names and maps of holes, which are read as
#: a whole. A path has up to 4 KiB, an attribute 64 KiB.
_TAR_HEADERS_MAX = 1 << 20
_TOO_MANY_HEADERS = "one file in it has more headers than any archive needs"
_CHUNK_BYTES = 256 * 1024
#: A file of so many bytes or more in a folder is looked into further only if these are in it.
_AUDIT = re.compile(rb"auditID|AuditId|protoPayload")

_KUBECTL = BY_NAME["kubectl"]
_NO_FILE = "that are no plain files"
_INSTEAD = (
    "`kubectl get cronjobs,jobs,pods,events -A -o json` prints a file that can; `tracekit import "
    "--help` lists the kinds, docs/rescue.md how to get each"
)
Found = tuple[Kind, LineSource]


class Gathering:
    """The files of one command line."""

    def __init__(self, scratch: Path, advance: Callable[[int], None], kind: str | None) -> None:
        self._scratch, self._advance = scratch, advance
        self._wanted = BY_NAME[kind] if kind is not None else None
        self._kept = self._kept_bytes = self._entries = 0
        #: Files that were left out, by why, and one of each.
        self.left_out: Counter[str] = Counter()
        self.examples: dict[str, str] = {}
        self.facts = Facts()

    def files(self, name: str, *, forced: bool = True) -> list[Found]:
        """What a word of the command line leads to; `forced`: all of the wanted kind.

        Raises:
            TraceFormatError: It leads to nothing that can be imported.
        """
        wanted = self._wanted if forced else None
        before = self.left_out.copy()
        if is_url(name):
            found = [f for r in remote_files(name) for f in self._one(r.name, r.opened, wanted)]
        elif name != "-" and Path(name).is_dir():
            found = list(self._folder(Path(name), wanted))
        else:
            return self._named(name, wanted)
        if not found:
            raise _nothing(name, self.left_out - before)
        return found

    def _named(self, name: str, wanted: Kind | None) -> list[Found]:
        """A file that somebody named: what it is not is said."""
        source = LineSource(name, self._advance)
        kind = wanted if wanted is not None and not _is_archive(source) else recognise(source)
        if kind is not None:
            if kind is _KUBECTL:
                self.facts.take(source.name, source.peek(SAMPLE_BYTES))
            return [(kind, source)]
        if not _is_archive(source):
            raise _unknown(source)
        before = self.left_out.copy()
        found = list(self._archive(source, wanted, 1))
        if not found:
            raise _nothing(name, self.left_out - before)
        return found

    def _folder(self, folder: Path, wanted: Kind | None) -> Iterator[Found]:
        """Every file below a folder, by name."""
        paths: list[str] = []
        for place, folders, names in os.walk(folder):
            folders[:] = sorted(f for f in folders if not f.startswith("."))
            paths += [str(Path(place, name)) for name in names if not name.startswith(".")]
        for path in sorted(paths):
            if Path(path).is_symlink():
                self._leave(path, "that are links")
            elif Path(path).is_file():
                yield from self._one(path, None, wanted)
            else:
                self._leave(path, _NO_FILE)

    def _one(
        self, name: str, opened: Callable[[], BinaryIO] | None, wanted: Kind | None
    ) -> Iterator[Found]:
        """A file of a folder."""
        source = LineSource(name, self._advance, opened)
        try:
            kind = self._kind_of(source, wanted)
            if kind is not None:
                source.release()
                yield kind, LineSource(name, self._advance, opened)
            elif _is_archive(source):
                yield from self._archive(source, wanted, 1)
        except TraceFormatError as error:
            self._leave(name, f"that cannot be read ({error})")

    def _kind_of(self, source: LineSource, wanted: Kind | None) -> Kind | None:
        """The kind of a file among others; None, and counted, if it is of no use."""
        head = source.peek(SAMPLE_BYTES)
        kind = recognise(source, deep=_AUDIT)
        is_fact = kind in (None, _KUBECTL) and self.facts.take(source.name, head)
        if kind is None and _is_archive(source):
            return None
        if kind is None:
            why = "" if is_fact else flaw(source)
            if not is_fact:
                self._leave(source.name, (why and f"of which each {why}") or "of no known kind")
        elif wanted is not None and kind is not wanted:
            self._leave(source.name, f"of the kind {kind.name}")
        elif not concerns(kind, source):
            self._leave(source.name, without_streams(source))
        else:
            return kind
        source.release()
        return None

    def _leave(self, name: str, why: str) -> None:
        self.left_out[why] += 1
        self.examples.setdefault(why, name)

    def _archive(self, source: LineSource, wanted: Kind | None, depth: int) -> Iterator[Found]:
        """The members of an archive that are of use, each kept as a file."""
        members = _zipped if source.peek(len(ZIP_MAGIC)) == ZIP_MAGIC else _tarred
        try:
            for name, stream in members(source, self._scratch, self._count):
                if stream is None:
                    self._leave(f"{source.name}/{name}", _NO_FILE)
                    continue
                member = LineSource(
                    f"{source.name}/{name}", opened=lambda stream=stream: stream,  # type: ignore[misc]
                    within=source.unpacked,
                )  # fmt: skip
                yield from self._member(member, wanted, depth)
        except BrokenArchiveError as error:
            self._leave(source.name, f"that end too early or are damaged ({error})")

    def _count(self, source: LineSource) -> None:
        """Count one entry: a folder or a link is work like a file."""
        self._entries += 1
        if self._entries > _ENTRIES_MAX:
            raise TraceFormatError(
                f"{source.name} has more than {_ENTRIES_MAX:,} files, folders and links: unpack it "
                "and name the folders that matter"
            )

    def _member(self, member: LineSource, wanted: Kind | None, depth: int) -> Iterator[Found]:
        name = member.name
        try:
            kind = self._kind_of(member, wanted)
            if kind is None:
                if _is_archive(member) and depth < _NESTED_MAX:
                    yield from self._archive(member, wanted, depth + 1)
                elif _is_archive(member):
                    self._leave(name, "that are archives within archives within archives")
                return
            path = self._keep(member)
        except TraceFormatError as error:
            self._leave(name, f"that cannot be read ({error})")
            return
        if member.problem is not None:
            self._leave(name, f"of which what was whole is kept ({member.problem})")
        yield kind, LineSource(name, path=path)

    def _keep(self, member: LineSource) -> Path:
        """The member's content in a file of its own."""
        self._scratch.mkdir(parents=True, exist_ok=True)
        path = self._scratch / f"member-{self._kept}"
        self._kept += 1
        with path.open("wb") as out:
            for chunk in member.chunks():
                self._kept_bytes += len(chunk)
                if self._kept_bytes > _KEPT_BYTES_MAX:
                    raise TraceFormatError(
                        f"{member.name}: more than {_KEPT_BYTES_MAX >> 30} GiB of files to import "
                        "are in archives: unpack them and name the folders that matter"
                    )
                out.write(chunk)
        return path


def _is_archive(source: LineSource) -> bool:
    head = source.peek(512)
    return head.startswith(ZIP_MAGIC) or head[_TAR_MAGIC] == b"ustar" or _begins_tar(head)


def _begins_tar(head: bytes) -> bool:
    """Whether it is the head of a file in a tar archive from before POSIX, by its checksum."""
    said = head[_TAR_SUM].rstrip(b" \0").lstrip()
    if len(head) < _TAR_BLOCK or not head[0] or not said.isdigit() or said.strip(b"01234567"):
        return False
    return int(said, 8) == sum(head) - sum(head[_TAR_SUM]) + 8 * ord(" ")


class _Chunks(io.RawIOBase):
    """A source as a file that is read once."""

    def __init__(self, source: LineSource) -> None:
        self._source = source
        self._chunks = source.chunks()
        self._rest = memoryview(b"")
        self._bytes = 0
        #: The last block that was read.
        self.tail = b""
        #: How much of it may have been read by now, and what is said of more.
        self._most: tuple[int, str] | None = None

    @contextmanager
    def at_most(self, size: int, else_say: str) -> Iterator[None]:
        """Have no more read for a while, but for what is read ahead."""
        self._most = self._bytes + size, else_say
        try:
            yield
        finally:
            self._most = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            if self._most is not None and self._bytes > self._most[0]:
                raise BrokenArchiveError(self._most[1])
            self._bytes += len(chunk)
            if self._bytes > _ARCHIVE_BYTES_MAX:
                raise TraceFormatError(
                    f"{self._source.name} unpacks to more than {_ARCHIVE_BYTES_MAX >> 30} GiB: "
                    "unpack it and name the folders that matter"
                )
            self._rest = memoryview(chunk)
            self.tail = (self.tail + chunk[-_TAR_BLOCK:])[-_TAR_BLOCK:]
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _tarred(source: LineSource, scratch: Path, count: _Count) -> Iterator[_Member]:
    """The files of a tar archive, one after the other, however it is compressed."""
    del scratch
    chunks = _Chunks(source)
    stream = io.BufferedReader(chunks, _CHUNK_BYTES)
    with archive_errors(), chunks.at_most(_TAR_HEADERS_MAX, _TOO_MANY_HEADERS):
        archive = tarfile.open(fileobj=stream, mode="r|")  # noqa: SIM115 - it holds nothing open
    while True:
        with archive_errors():
            with chunks.at_most(_TAR_HEADERS_MAX, _TOO_MANY_HEADERS):
                member = archive.next()
            file = archive.extractfile(member) if member is not None and member.isreg() else None
        if member is None:
            break
        count(source)
        archive.members = []  # type: ignore[attr-defined] # it remembers all that it has seen
        if not member.isdir() and not _is_hidden(member.name):
            yield member.name, None if file is None else cast("BinaryIO", Member(file))
        with archive_errors():
            _skip_to(archive, archive.offset)
    with archive_errors():
        while stream.read(_CHUNK_BYTES):
            pass  # what is compressed tells at its end whether it is whole
    if source.problem is not None:
        raise BrokenArchiveError(source.problem)
    if chunks.tail.strip(b"\0"):
        raise BrokenArchiveError("it has no end mark")  # cut between two files


def _skip_to(archive: tarfile.TarFile, offset: int) -> None:
    """Read the rest of a file; `tarfile` seeks beyond the end for as long as the size says."""
    stream = cast("BinaryIO", archive.fileobj)
    while (rest := offset - stream.tell()) > 0:
        if not stream.read(min(rest, _CHUNK_BYTES)):
            raise BrokenArchiveError("unexpected end of data")


def _zipped(source: LineSource, scratch: Path, count: _Count) -> Iterator[_Member]:
    """The files of a ZIP archive; its index is at its end, so it must lie in a file."""
    path = source.path
    if path is None or not _begins_as_zip(path):
        scratch.mkdir(parents=True, exist_ok=True)
        path = scratch / f"archive-{len(list(scratch.iterdir()))}"
        with path.open("wb") as out, archive_errors():
            shutil.copyfileobj(io.BufferedReader(_Chunks(source)), out)
    source.unpacked.packed = path.stat().st_size
    with archive_errors():
        archive = zipfile.ZipFile(path)
    with archive:
        if said := office(archive.namelist()):
            raise TraceFormatError(f"{source.name} {said}")
        for _ in archive.infolist():
            count(source)  # before any of them is looked at
        for entry in archive.infolist():
            # Older .NET, and so PowerShell's Compress-Archive, writes Windows' own separators.
            name = entry.filename
            name = name if "/" in name else name.replace("\\", "/")
            if name.endswith("/") or _is_hidden(name):
                continue
            with archive_errors():
                file = archive.open(entry)
            with file:
                yield name, cast("BinaryIO", Member(file, source.unpacked))


def _begins_as_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(ZIP_MAGIC)) == ZIP_MAGIC


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") and part not in (".", "..") for part in name.split("/"))


def _unknown(source: LineSource) -> TraceFormatError:
    """What is said of a file that is of no kind."""
    why = flaw(source, in_command(source.name))
    if why:
        return TraceFormatError(f"{source.name} {why}")
    return TraceFormatError(
        f"{source.name} holds nothing that can be imported in its first 8 MiB: {_INSTEAD}"
    )


def _nothing(name: str, left_out: Counter[str]) -> TraceFormatError:
    """What is said of a folder or an archive of which nothing is of use."""
    if not left_out:
        return TraceFormatError(f"{name} is an empty directory: name files")
    whys = "; ".join(f"{count:,} {why}" for why, count in left_out.most_common(3))
    return TraceFormatError(f"none of the files in {name} can be imported ({whys}): {_INSTEAD}")
