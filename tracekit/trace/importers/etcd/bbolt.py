"""Reading a bbolt file: pages, buckets, keys in order. Nothing is written, no lock is taken.

A file is pages of equal size. Pages 0 and 1 are metas, of which the later one counts; branch pages
lead to leaf pages; a leaf's value may be a bucket, with a root page of its own or, when small, with
its page inline. Layout: go.etcd.io/bbolt, page.go, bucket.go, db.go. `etcdctl snapshot
save` puts a SHA-256 behind the last page.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from tracekit.base.errors import TraceFormatError

MAGIC = 0xED0CDAED
_VERSION = 2
_HEADER = struct.Struct("<QHHI")  # id, flags, count, overflow
_META = struct.Struct("<IIIIQQQQQQ")  # magic … page size, flags, root, sequence, freelist, …
_BRANCH = struct.Struct("<IIQ")  # pos, key size, page
_LEAF = struct.Struct("<IIII")  # flags, pos, key size, value size
_BUCKET = struct.Struct("<QQ")  # root page, sequence
_IS_BRANCH, _IS_LEAF = 0x01, 0x02
_BUCKET_FLAG = 0x01
_DEPTH_MAX = 64
_FNV_START, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


def is_bbolt(sample: bytes) -> bool:
    """Whether a file begins like a bbolt file."""
    offset = _HEADER.size
    return len(sample) >= offset + 8 and struct.unpack_from("<II", sample, offset) == (
        MAGIC,
        _VERSION,
    )


class BoltFile:
    """A bbolt file, read page by page."""

    def __init__(self, path: Path, name: str) -> None:
        self._file = path.open("rb")
        self._name = name
        self._size = path.stat().st_size
        #: So many pages may still be read of a bucket.
        self._left = 0
        self._page_size, self._root = self._meta()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def bucket(self, name: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The keys and values of a bucket of the root, in order of the keys."""
        self._left = self._size // self._page_size  # each page has one place
        for key, value, flags in self._walk(self._root, 0):
            if key == name and flags & _BUCKET_FLAG:
                if len(value) < _BUCKET.size:
                    raise self._broken("the head of a bucket is cut off")
                root, _ = _BUCKET.unpack_from(value)
                inline = value[_BUCKET.size :]
                found = self._walk(root, 0) if root else self._page(inline, 0)
                yield from ((k, v) for k, v, f in found if not f & _BUCKET_FLAG)
                return

    def _broken(self, why: str) -> TraceFormatError:
        return TraceFormatError(
            f"{self._name} is damaged ({why}): take the snapshot again (etcdctl snapshot save), or "
            "copy the db file while etcd is stopped"
        )

    def _meta(self) -> tuple[int, int]:
        """Page size and root page of the newest whole meta page."""
        first = self._file.read(1 << 16)
        found: list[tuple[int, int, int]] = []
        sizes = [1 << bits for bits in range(9, 17)]
        for offset in (0, *sizes):
            start = offset + _HEADER.size
            if start + _META.size > len(first):
                break
            fields = _META.unpack_from(first, start)
            magic, version, page_size, _, root, _, _, _, transaction, checksum = fields
            if (magic, version) != (MAGIC, _VERSION) or offset not in (0, page_size):
                continue
            if _fnv64a(first[start : start + _META.size - 8]) == checksum:
                found.append((transaction, page_size, root))
        if not found:
            raise self._broken("neither of its two meta pages is whole")
        _, page_size, root = max(found)
        return page_size, root

    def _walk(self, page: int, depth: int) -> Iterator[tuple[bytes, bytes, int]]:
        if depth > _DEPTH_MAX:
            raise self._broken("its pages go in a circle")
        start = page * self._page_size
        if start + self._page_size > self._size:
            raise self._broken(f"page {page} lies behind its end")
        self._file.seek(start)
        head = self._file.read(_HEADER.size)
        _, _, _, overflow = _HEADER.unpack(head)
        if start + (overflow + 1) * self._page_size > self._size:
            raise self._broken(f"page {page} goes on behind its end")
        self._left -= overflow + 1
        if self._left < 0:
            raise self._broken("its pages go in a circle, or several have one place")
        rest = self._file.read((overflow + 1) * self._page_size - _HEADER.size)
        yield from self._page(head + rest, depth)

    def _page(self, data: bytes, depth: int) -> Iterator[tuple[bytes, bytes, int]]:
        """The leaves of a page, or of the pages below it."""
        try:
            number, flags, count, _ = _HEADER.unpack_from(data)
            if flags & _IS_BRANCH:
                for index in range(count):
                    offset = _HEADER.size + index * _BRANCH.size
                    yield from self._walk(_BRANCH.unpack_from(data, offset)[2], depth + 1)
            elif flags & _IS_LEAF:
                left = len(data) - _HEADER.size - count * _LEAF.size
                for index in range(count):
                    offset = _HEADER.size + index * _LEAF.size
                    leaf, position, key_size, value_size = _LEAF.unpack_from(data, offset)
                    start = offset + position
                    middle, end = start + key_size, start + key_size + value_size
                    if end > len(data):
                        raise self._broken(f"an entry of page {number} is cut off")
                    left -= end - start
                    if left < 0:
                        raise self._broken(f"entries of page {number} have one place")
                    yield data[start:middle], data[middle:end], leaf
            else:
                raise self._broken(f"page {number} is neither branch nor leaf")
        except struct.error as error:
            raise self._broken(str(error)) from error


def _fnv64a(data: bytes) -> int:
    result = _FNV_START
    for byte in data:
        result = ((result ^ byte) * _FNV_PRIME) & 0xFFFFFFFFFFFFFFFF
    return result
