"""Checksums over every byte of a trace: the seals of segments, and of its JSON documents.

A **segment's seal** stands in its footer (key `tracekit.seal`): which bytes each row group takes,
the digest of each, and the digest of the rest of the file, which is the footer itself, whatever
lies before it, and the seal (with zeros in the place of that digest). So a file in place is always
a file that can be verified, whoever wrote it and whatever was interrupted; and a reader verifies
just what it reads. A **document** (`trace.json`, `manifest.json`) holds the digest of the rest of
itself.

Digests are BLAKE2b-256: against bit rot, cut and mixed-up files. They say nothing about who wrote
a trace: whoever can write one can seal it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

SEAL_KEY = b"tracekit.seal"
DIGEST_MEMBER = "digest"

_DIGEST_BYTES = 32
_HEX = 2 * _DIGEST_BYTES
_OFFSET_HEX = 12
_IDENTITY_HEX = 32
_CHUNK = 1 << 20
#: Length of the footer and the magic number.
_END_BYTES = 8
_MAGIC = b"PAR1"
#: No footer of ours comes near it.
FOOTER_BYTES_MAX = 32 << 20
#: A choice: ten times what there are, for releases to come.
_COLUMNS_MAX = 1_000
_START = b'{"tracekit_seal":1,"trace":"'
_SEAL = re.compile(
    re.escape(_START) + rb'(?P<trace>[0-9a-f]{%d})","groups":\[(?P<groups>[^\]]*)\],'
    rb'"rest":"(?P<rest>[0-9a-f]{%d}):(?P<digest>[0-9a-f]{%d})"\}' % (
        _IDENTITY_HEX, _OFFSET_HEX, _HEX
    )
)  # fmt: skip
_GROUP = re.compile(rb'"([0-9a-f]{%d}):([0-9a-f]{%d})"' % (_OFFSET_HEX, _HEX))


class DamageError(Exception):
    """What was read is not what was written; the message is the reason alone."""


class Part(Struct, frozen=True):
    """A range of a file's bytes, and what they must come to."""

    offset: int
    length: int
    digest: str


class Seal(Struct, frozen=True):
    """What a segment says about its own bytes."""

    #: The same in all segments of a trace: the digest of the first row group ever written to it.
    trace: str
    #: One for each row group, in order, without a gap between them.
    groups: tuple[Part, ...]
    #: All that follows: Bloom filters, footer.
    rest: Part


class Footer(Struct, frozen=True):
    """The verified end of a file."""

    #: As much as `pyarrow.parquet.read_metadata` needs.
    data: bytes
    seal: Seal | None
    #: Of the bytes that were verified; without a seal, of the footer.
    digest: str


#### Sealing ####


def unsealed(groups: int) -> bytes:
    """What a writer puts under `SEAL_KEY`; `seal_file` fills it in."""
    return _text("0" * _IDENTITY_HEX, [Part(0, 0, "0" * _HEX)] * groups, 0, "0" * _HEX)


def seal_file(path: Path, identity: str | None) -> None:
    """Seal a finished Parquet file that was written with `unsealed`.

    Without an identity the trace begins with this file and has it from its first row group.
    """
    with path.open("rb+") as file:
        size = os.fstat(file.fileno()).st_size
        bounds = _group_bounds(pq.read_metadata(path))
        parts = []
        for start, end in pairwise(bounds):
            digest = _digest_of(file.fileno(), start, end - start)
            parts.append(Part(start, end - start, digest))
        identity = identity or parts[0].digest[:_IDENTITY_HEX]
        rest = bounds[-1]
        tail = os.pread(file.fileno(), size - rest, rest)
        place = tail.rfind(_START)
        blank = _text(identity, parts, rest, "0" * _HEX)
        tail = tail[:place] + blank + tail[place + len(blank) :]
        digest = hashlib.blake2b(tail, digest_size=_DIGEST_BYTES).hexdigest()
        os.pwrite(file.fileno(), _text(identity, parts, rest, digest), rest + place)


def _text(identity: str, groups: list[Part], rest: int, digest: str) -> bytes:
    ends = ",".join(
        f'"{part.offset + part.length:0{_OFFSET_HEX}x}:{part.digest}"' for part in groups
    )
    return (
        _START.decode() + f'{identity}","groups":[{ends}],'
        f'"rest":"{rest:0{_OFFSET_HEX}x}:{digest}"}}'
    ).encode()


def _group_bounds(metadata: pq.FileMetaData) -> list[int]:
    """Where each row group's share of the file begins, and where the last one's ends."""
    ends = [0]
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        columns = [group.column(at) for at in range(group.num_columns)]
        ends.append(max(chunk_start(column) + column.total_compressed_size for column in columns))
    return ends


def chunk_start(column: pq.ColumnChunkMetaData) -> int:
    """Where the first page of a column chunk begins."""
    offsets = (column.dictionary_page_offset, column.data_page_offset)
    return min(int(offset) for offset in offsets if offset is not None)


#### Verifying ####


def read_footer(descriptor: int) -> Footer:
    """Read and verify the end of a segment, before anything believes it."""
    size = os.fstat(descriptor).st_size
    end = os.pread(descriptor, _END_BYTES, max(0, size - _END_BYTES))
    length = int.from_bytes(end[:4], "little")
    if end[4:] != _MAGIC or length + _END_BYTES + len(_MAGIC) > size:
        raise DamageError("it does not end like a Parquet file")
    if length > FOOTER_BYTES_MAX:
        raise DamageError(f"its footer would take {length >> 20} MiB, which none does")
    footer = os.pread(descriptor, length + _END_BYTES, size - length - _END_BYTES)
    place = footer.rfind(_START)
    match = _SEAL.match(footer, place) if place >= 0 else None
    if match is None:
        return Footer(footer, None, _hash(footer))
    seal = _parse(match, size)
    tail = os.pread(descriptor, seal.rest.length, seal.rest.offset)
    at = len(tail) - len(footer) + match.start("digest")
    blank = tail[:at] + b"0" * _HEX + tail[at + _HEX :]
    if seal.rest.length < len(footer) or _hash(blank) != seal.rest.digest:
        raise DamageError("its footer is not what was written: the checksum differs")
    return Footer(footer, seal, seal.rest.digest)


def _parse(match: re.Match[bytes], size: int) -> Seal:
    parts = []
    start = 0
    for end_text, digest in _GROUP.findall(match["groups"]):
        end = int(end_text, 16)
        parts.append(Part(start, end - start, digest.decode()))
        start = end
    rest = int(match["rest"], 16)
    if rest != start or rest > size or any(part.length < 0 for part in parts):
        raise DamageError("its footer is not what was written: it describes another file")
    return Seal(
        match["trace"].decode(), tuple(parts), Part(rest, size - rest, match["digest"].decode())
    )


def part_fits(descriptor: int, part: Part) -> bool:
    """Whether a range of a file has its digest."""
    return _digest_of(descriptor, part.offset, part.length) == part.digest


def content_fits(content: bytes, part: Part) -> bool:
    """The same of bytes that are to become that range."""
    return _hash(content) == part.digest


def rest_offset(end: bytes, size: int) -> int:
    """From where on a segment of so many bytes must be there to be opened, by its last bytes.

    More of them are needed where it says less than they begin at; without a seal, all are.
    """
    length = int.from_bytes(end[-_END_BYTES:-4], "little") + _END_BYTES
    if end[-4:] != _MAGIC or length > min(size, FOOTER_BYTES_MAX):
        return 0
    if length > len(end):
        return size - length
    place = end.rfind(_START)
    match = _SEAL.match(end, place) if place >= 0 else None
    return min(int(match["rest"], 16), size - length) if match is not None else 0


def _digest_of(descriptor: int, offset: int, length: int) -> str:
    state = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    end = offset + length
    while offset < end:
        chunk = os.pread(descriptor, min(_CHUNK, end - offset), offset)
        if not chunk:
            raise DamageError("it is cut off")
        state.update(chunk)
        offset += len(chunk)
    return state.hexdigest()


def whole_digest(descriptor: int) -> str:
    """The digest of a whole file: what an unsealed segment is known by."""
    return _digest_of(descriptor, 0, os.fstat(descriptor).st_size)


def footer_metadata(footer: Footer) -> pq.FileMetaData:
    """The file's metadata, out of the bytes that were verified."""
    metadata = pq.read_metadata(pa.BufferReader(_MAGIC + footer.data))
    _check_counts(metadata)
    return metadata


def _check_counts(metadata: pq.FileMetaData) -> None:
    """`DamageError` if there are more parts than rows, or columns than any release will write."""
    if metadata.num_columns > _COLUMNS_MAX:
        raise DamageError(f"it has {metadata.num_columns:,} columns, which no trace has")
    if metadata.num_row_groups > max(1, metadata.num_rows):
        raise DamageError("it has more row groups than rows")
    for number in range(metadata.num_row_groups):
        if metadata.row_group(number).num_columns != metadata.num_columns:
            raise DamageError("it has a row group without all of its columns")


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()


#### Documents ####


def sealed_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with the digest of the rest of it."""
    return {**document, DIGEST_MEMBER: _document_digest(document)}


def check_document(document: Mapping[str, Any]) -> bool:
    """Whether a document is sealed; `DamageError` if it is and something in it was changed."""
    if DIGEST_MEMBER not in document:
        return False
    if document[DIGEST_MEMBER] != _document_digest(document):
        raise DamageError("it is not what was written: the checksum differs")
    return True


def _document_digest(document: Mapping[str, Any]) -> str:
    rest = {name: value for name, value in document.items() if name != DIGEST_MEMBER}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return _hash(text.encode())
