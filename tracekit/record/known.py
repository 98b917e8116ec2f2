"""The live objects of one stream as last seen, so that a relist can tell what was deleted.

Bodies are kept because a synthesised DELETED row carries the object's last state, and because a
rotated trace opens with a list of what lives. They are compressed once a stream holds many: a
cluster's pods must not become the recorder's memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import zstandard

_PLAIN_BYTES_MAX = 16 << 20
_COMPRESS = zstandard.ZstdCompressor(level=1, write_content_size=True)
_DECOMPRESS = zstandard.ZstdDecompressor()


@dataclass(slots=True)
class _Entry:
    resource_version: str
    body: bytes
    compressed: bool


class KnownObjects:
    """uid → last revision and body."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._plain_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, uid: object) -> bool:
        return uid in self._entries

    def revision(self, uid: str) -> str | None:
        """Give the last revision seen of a live object."""
        entry = self._entries.get(uid)
        return entry.resource_version if entry is not None else None

    def put(self, uid: str, resource_version: str, body: bytes) -> None:
        """Remember the newest state of an object."""
        self.drop(uid)
        compressed = self._plain_bytes + len(body) > _PLAIN_BYTES_MAX
        if compressed:
            body = _COMPRESS.compress(body)
        else:
            self._plain_bytes += len(body)
        self._entries[uid] = _Entry(resource_version, body, compressed)

    def drop(self, uid: str) -> None:
        """Forget an object that is gone."""
        entry = self._entries.pop(uid, None)
        if entry is not None and not entry.compressed:
            self._plain_bytes -= len(entry.body)

    def body(self, uid: str) -> bytes:
        """Give the last state of a live object."""
        entry = self._entries[uid]
        return _DECOMPRESS.decompress(entry.body) if entry.compressed else entry.body

    def uids(self) -> Iterator[str]:
        """Go through the live objects in the order of their last change."""
        return iter(tuple(self._entries))
