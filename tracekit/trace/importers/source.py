"""Lines out of a file that may be compressed and may be cut off: plain, gzip, bzip2, xz, Zstandard.

Decompression is incremental, so that everything before a cut is delivered and the cut is noticed:
the usual stream readers either raise before the last good bytes or say nothing at all. Text comes
out as UTF-8 without a byte order mark, whatever it was written in: PowerShell writes UTF-16.
"""

from __future__ import annotations

import bz2
import codecs
import io
import lzma
import re
import shlex
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Protocol

import zstandard

from tracekit.base.errors import TraceFormatError
from tracekit.trace.format.limits import VALUES_MAX
from tracekit.trace.importers.values import check_values

_CHUNK_BYTES = 256 * 1024
#: Compressed bytes that are taken apart at a time: what they usually become should fit into a
#: processor's cache, and the worst that Zstandard can make of them (a block of 128 KiB out of four
#: bytes) into memory.
_PACKED_BYTES = 2 * 1024
#: So much may come out of a file, or so many times as much as was read of it: the longest records
#: of real clusters have a hundred and fifty times, what is nothing but a bomb ten thousand times.
_UNPACKED_BYTES_MIN = 256 * 1024 * 1024
_UNPACKED_TIMES = 1200
#: Lines and values of JSON that may come out of it: real records have up to five for each byte
#: that they are compressed to, a bomb of empty lines or objects a thousand. Each is work.
_PIECES_MIN = 4_000_000
_PIECES_TIMES = 40
_PIECE_SIGNS = (b"\n", b"{", b"[", b",")
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_BZIP2_MAGIC = b"BZh"
_XZ_MAGIC = b"\xfd7zXZ\x00"
#: What text begins with that says its encoding; None: it is UTF-8.
_MARKS = (
    (codecs.BOM_UTF8, None),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
#: UTF-16 without a mark is told by so many bytes, every second of them zero and the others ASCII.
_MARK_BYTES = 8
_ASCII = b"\t\r\n" + bytes(range(0x20, 0x7F))
#: What colours text in a terminal, or sets its title: `jq -C`, `script`. No JSON or YAML has it.
_ESCAPES = re.compile(rb"\x1b(?:\[\?2004l\r|\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_ESCAPE_BYTES_MAX = 256
#: Text that has none in so many bytes is not looked through for them.
_LOOKED_AT = 64 * 1024
#: What the strongest setting of xz takes to decompress is 65 MiB.
_XZ_MEMORY_MAX = 128 * 1024 * 1024
_DAMAGED = (zlib.error, lzma.LZMAError, zstandard.ZstdError)
_MID_LINE = "it ends in the middle of a line"
#: A line longer than this is no one document that memory should hold.
_LINE_BYTES_MAX = 256 * 1024 * 1024

#: What standard input is called.
STDIN = "stdin"
#: What is said of a file without text.
EMPTY = "is empty: there is nothing to import"
BLANK = "holds nothing but white space: there is nothing to import"
BEGINS_BLANK = (
    "begins with 256 KiB of white space, and nothing in its first 8 MiB can be imported: name "
    "another file"
)


class _Decompressor(Protocol):
    """What `zlib` and `zstandard` have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


class Unpacked:
    """What came out of one compressed file or archive, beside the bytes that were read of it."""

    def __init__(self, name: str, within: Unpacked | None = None) -> None:
        """`within`: of the archive that it is in, whose bounds hold for all that is in it."""
        self._name = name
        self._within = within
        #: Bytes that were read of it.
        self.packed = 0
        self._bytes = self._pieces = 0

    def take(self, plain: bytes) -> None:
        """Count what came out next.

        Raises:
            TraceFormatError: It is more than a file of its size may hold.
        """
        self._bytes += len(plain)
        self._pieces += sum(map(plain.count, _PIECE_SIGNS))
        if self._bytes > max(_UNPACKED_BYTES_MIN, self.packed * _UNPACKED_TIMES):
            raise TraceFormatError(
                f"{self._name} holds more than {_UNPACKED_TIMES:,} times the bytes that it has: it "
                "is no log; if you know better, decompress it first"
            )
        if self._pieces > max(_PIECES_MIN, self.packed * _PIECES_TIMES):
            raise TraceFormatError(
                f"{self._name} holds more than {_PIECES_MIN:,} lines and values of JSON, and more "
                f"than {_PIECES_TIMES} for each byte that it has: it is no log; if you know "
                "better, decompress it first"
            )
        if self._within is not None:
            self._within.take(plain)


class LineSource:
    """The lines of one file; `problem` says afterwards how it ended too early, if it did."""

    may_be_empty = False
    #: Whether it has bytes at all, once its blocks are read.
    has_bytes = False

    def __init__(
        self,
        name: str,
        advance: Callable[[int], None] | None = None,
        opened: Callable[[], BinaryIO] | None = None,
        path: Path | None = None,
        within: Unpacked | None = None,
    ) -> None:
        """`path`: where it lies, if `name` is another; `within`: what came out of its archive."""
        self.name = STDIN if name == "-" else shown_name(name)
        #: What came out of it so far, where it is compressed.
        self.unpacked = Unpacked(self.name, within)
        self._within = within
        self.problem: str | None = None
        #: The part of a line that the cut left.
        self.fragment = b""
        #: Where it lies; None for standard input and for what lies elsewhere (`opened`).
        self.path = path if path is not None else _path_of(name, opened)
        #: When what it holds was collected at the latest, Unix ns, where something says so.
        self.collected_ns: int | None = None
        self._open = opened
        self._advance = advance or (lambda _: None)
        self._begun: Iterator[bytes] | None = None
        self._peeked: list[bytes] = []
        #: Of standard input what was looked at, for who asks again what it is.
        self._first = b""

    def peek(self, size: int) -> bytes:
        """What the file begins with, decompressed, without taking it."""
        while sum(map(len, self._peeked)) < size:
            chunk = next(self._rest(), None)
            if chunk is None:
                break
            self._peeked.append(chunk)
        found = b"".join(self._peeked)[:size]
        if self._is_read_once and len(found) > len(self._first):
            self._first = found
        return found

    def chunks(self) -> Iterator[bytes]:
        """The whole content, decompressed."""
        while self._peeked:
            yield self._peeked.pop(0)
        yield from self._rest()

    def again(self) -> LineSource:
        """The same source from its beginning, as far as it can be read twice."""
        opened, first = self._open, self._first
        if self._is_read_once:
            opened = lambda: io.BytesIO(first)  # noqa: E731 - a file to open, as the others
        return LineSource(self.name, opened=opened, path=self.path, within=self._within)

    @property
    def _is_read_once(self) -> bool:
        return self.path is None and self._open is None

    def release(self) -> None:
        """Let go of the file and of what was read of it: nothing more is wanted."""
        self._begun, self._peeked = iter(()), []

    def lines(self) -> Iterator[bytes]:
        """Every whole line, without its line break."""
        for block in self.blocks(0):
            yield from block.split(b"\n")

    def blocks(self, size: int) -> Iterator[bytes]:
        """All whole lines, some at a time: at least so many bytes of them, if there are."""
        rest: list[bytes] = []
        held = line_bytes = 0
        for chunk in self.chunks():
            self.has_bytes = True
            if line_bytes == 0 and len(chunk) == _CHUNK_BYTES and chunk.isspace():
                continue  # a hundred thousand empty lines are no lines of a log
            end = chunk.rfind(b"\n")
            if end < 0:
                rest.append(chunk)
                line_bytes += len(chunk)
            else:
                if held + line_bytes + end < size:
                    rest.append(chunk)
                    held += line_bytes + end
                else:
                    yield self._checked(b"".join((*rest, chunk[:end])))
                    rest, held = [chunk[end + 1 :]], 0
                line_bytes = len(chunk) - end - 1
            if line_bytes > _LINE_BYTES_MAX:
                raise TraceFormatError(
                    f"{self.name} has a line of more than {_LINE_BYTES_MAX >> 20} MiB: write one "
                    "JSON document a line (of a list: `jq -c '.items[]'`)"
                )
        whole, broken, last = self._checked(b"".join(rest)).rpartition(b"\n")
        if broken:
            yield whole
        if last.strip():
            if self.problem is None and last.rstrip().endswith((b"}", b"]")):
                yield last  # no line break at the end of the file, but whole
                return
            self.fragment = last
            self.problem = self.problem or _MID_LINE

    def _checked(self, block: bytes) -> bytes:
        """The block, none of whose lines holds more values than memory does."""
        if len(block) > VALUES_MAX:  # else no line of it can
            for line in block.split(b"\n"):
                check_values(line, self.name)
        return block

    def text_lines(self) -> Iterator[bytes]:
        """Every line of text, where nothing tells whether the last one is whole."""
        yield from self.lines()
        if self.fragment:
            yield self.fragment
            self.ends_whole()

    def ends_whole(self) -> None:
        """Say that the last line, which has no line break, was read whole."""
        self.fragment = b""
        if self.problem == _MID_LINE:
            self.problem = None

    def _rest(self) -> Iterator[bytes]:
        if self._begun is None:
            self._begun = _decoded(self._opened())
        return self._begun

    def _opened(self) -> Iterator[bytes]:
        try:
            if self._open is not None:
                with self._open() as stream:
                    yield from self._chunks(stream)
            elif self.path is None:
                yield from self._chunks(sys.stdin.buffer)
            else:
                with self.path.open("rb") as file:
                    yield from self._chunks(file)
        except FileNotFoundError:
            raise TraceFormatError(f"{self.name} does not exist: name what to import") from None
        except IsADirectoryError:
            raise TraceFormatError(f"{self.name} is a directory: name the files in it") from None
        except OSError as error:
            raise TraceFormatError(f"{self.name} cannot be read: {error.strerror}") from error

    def _chunks(self, file: BinaryIO) -> Iterator[bytes]:
        chunk = file.read(_CHUNK_BYTES)
        while 0 < len(chunk) < len(_XZ_MAGIC) and (more := file.read(_CHUNK_BYTES)):
            chunk += more
        if chunk.startswith(_ZSTD_MAGIC):
            yield from self._decompressed(
                file, chunk, lambda: zstandard.ZstdDecompressor().decompressobj()
            )
        elif chunk.startswith(_GZIP_MAGIC):
            yield from self._decompressed(file, chunk, lambda: zlib.decompressobj(wbits=31))
        elif chunk.startswith(_BZIP2_MAGIC):
            yield from self._decompressed(file, chunk, bz2.BZ2Decompressor)
        elif chunk.startswith(_XZ_MAGIC):
            yield from self._decompressed(
                file, chunk, lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY_MAX)
            )
        else:
            while chunk:
                self._advance(len(chunk))
                self.unpacked.packed += len(chunk)
                yield chunk
                chunk = file.read(_CHUNK_BYTES)

    def _decompressed(
        self, file: BinaryIO, chunk: bytes, make: Callable[[], _Decompressor]
    ) -> Iterator[bytes]:
        """Frame after frame, as concatenated files have several."""
        decompressor = make()
        while chunk:
            self._advance(len(chunk))
            self.unpacked.packed += len(chunk)
            start = 0
            while start < len(chunk):
                if decompressor.eof:
                    if not chunk[start:].strip(b"\0"):
                        break  # padding
                    decompressor = make()
                piece = chunk[start : start + _PACKED_BYTES]
                start += len(piece)
                try:
                    plain = decompressor.decompress(piece)
                except (*_DAMAGED, OSError, EOFError) as error:
                    self.problem = f"its compressed data is damaged ({error})"
                    return
                self.unpacked.take(plain)
                for at in range(0, len(plain), _CHUNK_BYTES):
                    yield plain[at : at + _CHUNK_BYTES]
                if decompressor.eof:
                    start -= len(decompressor.unused_data)
            chunk = file.read(_CHUNK_BYTES)
        if not decompressor.eof:
            self.problem = "its compressed data ends too early"


def shown_name(name: str) -> str:
    """The name of a file as text: bytes that are none are written out."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def in_command(name: str) -> str:
    """A file's name as a command of a shell has it; FILE if it lies in an archive or elsewhere."""
    return shlex.quote(name) if Path(name).is_file() else "FILE"


def _path_of(name: str, opened: object) -> Path | None:
    return None if name == "-" or opened is not None else Path(name)


def _decoded(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The chunks as UTF-8 without a byte order mark, where they begin as text of another kind."""
    head = b""
    for chunk in chunks:
        head += chunk
        if len(head) >= _MARK_BYTES:
            break
    mark, encoding = _marked(head)
    rest: Iterable[bytes] = chain((head[len(mark) :],), chunks) if head else chunks
    if encoding is not None:
        rest = _as_utf8(rest, encoding)
    yield from _plain(rest) if b"\x1b" in head[:_LOOKED_AT] else rest


def _as_utf8(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for chunk in chunks:
        yield decoder.decode(chunk).encode()
    yield decoder.decode(b"", final=True).encode()


def _plain(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks without a terminal's escape sequences, where they are text."""
    held: bytes | None = None
    for chunk in chunks:
        if held is None and b"\0" in chunk[:_LOOKED_AT]:
            yield chunk
            yield from chunks
            return
        text = (held or b"") + chunk
        last = text.rfind(b"\x1b", max(0, len(text) - _ESCAPE_BYTES_MAX))
        is_cut = last >= 0 and _ESCAPES.match(text, last) is None
        held = text[last:] if is_cut else b""
        yield _ESCAPES.sub(b"", text[:last] if is_cut else text)
    if held:
        yield held


def _marked(head: bytes) -> tuple[bytes, str | None]:
    """The mark with which text begins, and its encoding where that is not UTF-8."""
    begin = head[:_MARK_BYTES]
    for mark, encoding in _MARKS:
        if begin.startswith(mark) and (encoding is None or 0 in begin):
            return mark, encoding
    for first, encoding in ((0, "utf-16-le"), (1, "utf-16-be")):
        letters, zeros = begin[first::2], begin[1 - first :: 2]
        if letters and zeros and not zeros.strip(b"\0") and not letters.strip(_ASCII):
            return b"", encoding
    return b"", None
