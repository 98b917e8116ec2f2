"""The live objects of one stream as last seen, so that a list can tell what was deleted since.

Bodies are kept because a synthesised DELETED row carries the object's last state, and because a
rotated trace opens with a list of what lives. When a stream holds many, those that changed longest
ago are compressed, many in one block: a cluster's pods must not become the memory of a recorder or
an import.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import zstandard

#: Bodies beyond this are packed away, until half of it is left.
_PLAIN_BYTES_MAX = 8 << 20
_BLOCK_BYTES = 1 << 18


class _Block:
    """Bodies compressed together; lives as long as one of them does."""

    __slots__ = ("packed",)

    def __init__(self, packed: bytes) -> None:
        self.packed = packed


class _Packed(NamedTuple):
    resource_version: str
    block: _Block
    start: int
    end: int


class KnownObjects:
    """uid → last revision and body."""

    def __init__(self) -> None:
        # Every object of `_packed` changed before every one of `_plain`.
        self._packed: dict[str, _Packed] = {}
        self._plain: dict[str, tuple[str, bytes]] = {}
        self._plain_bytes = 0
        self._unpacked: tuple[_Block, bytes] | None = None

    def __len__(self) -> int:
        return len(self._packed) + len(self._plain)

    def __contains__(self, uid: object) -> bool:
        return uid in self._plain or uid in self._packed

    def revision(self, uid: str) -> str | None:
        """Give the last revision seen of a live object."""
        entry = self._plain.get(uid) or self._packed.get(uid)
        return entry[0] if entry is not None else None

    def put(self, uid: str, resource_version: str, body: bytes) -> None:
        """Remember the newest state of an object."""
        self.drop(uid)
        self._plain[uid] = (resource_version, body)
        self._plain_bytes += len(body)
        if self._plain_bytes > _PLAIN_BYTES_MAX:
            self._pack()

    def drop(self, uid: str) -> None:
        """Forget an object that is gone."""
        entry = self._plain.pop(uid, None)
        if entry is not None:
            self._plain_bytes -= len(entry[1])
        elif self._packed:
            self._packed.pop(uid, None)

    def body(self, uid: str) -> bytes:
        """Give the last state of a live object."""
        entry = self._plain.get(uid)
        if entry is not None:
            return entry[1]
        packed = self._packed[uid]
        if self._unpacked is None or self._unpacked[0] is not packed.block:
            # Whoever asks for one asks for its neighbours next.
            self._unpacked = (packed.block, zstandard.decompress(packed.block.packed))
        return self._unpacked[1][packed.start : packed.end]

    def uids(self) -> Iterator[str]:
        """Go through the live objects in the order of their last change."""
        return iter(tuple(chain(self._packed, self._plain)))

    def _pack(self) -> None:
        """Compress the bodies that changed longest ago."""
        self._unpacked = None
        while self._plain_bytes > _PLAIN_BYTES_MAX // 2:
            members: list[tuple[str, str, int, int]] = []
            bodies: list[bytes] = []
            end = 0
            for uid, (revision, body) in self._plain.items():
                bodies.append(body)
                members.append((uid, revision, end, end + len(body)))
                end += len(body)
                if end >= _BLOCK_BYTES:
                    break
            block = _Block(zstandard.compress(b"".join(bodies), level=1))
            for uid, revision, start, stop in members:
                del self._plain[uid]
                self._packed[uid] = _Packed(revision, block, start, stop)
            self._plain_bytes -= end
