"""`tracekit import etcd`, `kine`, `etcd-delta`: the store's own revisions become a trace.

A store keeps every revision since its last compaction, and the last one of each object before.
It keeps no times; but Leases are renewed every few seconds, and each renewal writes the time of the
writer's clock, in microseconds. So each revision lies between two renewals.
"""

from __future__ import annotations

import binascii
import sqlite3
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import orjson

from tracekit.base.errors import TraceFormatError
from tracekit.base.json_text import json_text
from tracekit.base.kube.timestamps import parse_rfc3339
from tracekit.trace.format.extract import INT64_MAX
from tracekit.trace.format.model import STREAM_KINDS, Origin, RowType
from tracekit.trace.importers.etcd.bbolt import BoltFile, is_bbolt
from tracekit.trace.importers.etcd.sqlite_file import SQLITE_MAGIC, beside, stored_table
from tracekit.trace.importers.etcd.stored import (
    EncryptedError,
    UnreadableError,
    fields_of,
    object_of,
)
from tracekit.trace.importers.frames import can_be_received, latest_stamp
from tracekit.trace.importers.observation import Observation
from tracekit.trace.importers.report import ImportResult, Problems
from tracekit.trace.importers.source import LineSource
from tracekit.trace.importers.spill import Spill
from tracekit.trace.importers.values import check_values

_Key = tuple[int, int]
_REVISION_BYTES = 17
_TOMBSTONE = b"t"
_HASH_BYTES = 32
_DELTA_BYTES_MAX = 1 << 30


class _Stored(msgspec.Struct, array_like=True):
    """One revision of one key."""

    stream: str
    key: str
    value: bytes
    deleted: bool
    created: bool
    looked: bool = False  # the last one before a compaction: what led to it is gone
    at_ns: int | None = None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Stored).decode


class StoreReader:
    """Takes revisions in any order and hands out rows in the order of the store."""

    def __init__(self, scratch: Path, result: ImportResult) -> None:
        self.result = result
        self._scratch = scratch
        self._spill: Spill[_Key] = Spill(scratch, "store", _Key)  # type: ignore[arg-type]
        self._number = count()
        self._unknown = Problems()
        self._lease_revisions = array("q")
        self._lease_times = array("q")
        self._untimed = 0
        self.kubernetes_version: str | None = None

    def take(self, revision: int, key: str, stored: _Stored) -> None:
        """Take one revision of a key."""
        self.result.shapes["revision"] += 1
        if stored.stream == "leases" and not stored.deleted:
            at_ns = _renewed_ns(stored.value)
            if at_ns is not None:
                self._lease_revisions.append(revision)
                self._lease_times.append(at_ns)
        self._spill.add((revision, next(self._number)), _encode(stored))
        del key

    def rows(self) -> Iterator[Observation]:
        """The states, oldest first."""
        self._settle_times()
        alive: dict[str, bytes] = {}
        seen: tuple[int, str] | None = None
        last_ns = 0
        for (revision, _), data in self._spill.sorted():
            stored = _decode(data)
            if seen == (revision, stored.key):
                self.result.problems["revisions that are there several times, taken once"] += 1
                continue
            seen = (revision, stored.key)
            if stored.deleted:
                text = alive.pop(stored.key, None) or stored.value
                if not text:
                    self.result.problems[
                        "deletions of objects that are not there any more, left out"
                    ] += 1
                    continue
                stored.value = text
            else:
                alive[stored.key] = stored.value
            row = self._row(revision, stored, last_ns)
            if row is not None:
                last_ns = max(last_ns, row.recv_ns)
                yield row
        self._report()

    def _row(self, revision: int, stored: _Stored, last_ns: int) -> Observation | None:
        obj = self._object(stored)
        if obj is None:
            return None
        meta = obj.get("metadata")
        obj["metadata"] = {**(meta if isinstance(meta, dict) else {}),
                           "resourceVersion": str(revision)}  # fmt: skip
        row_type = RowType.MODIFIED
        if stored.deleted:
            row_type = RowType.DELETED
        elif stored.looked:
            row_type = RowType.LIST
        elif stored.created:
            row_type = RowType.ADDED
        at_ns, before_ns = stored.at_ns, None
        if at_ns is None:
            self._untimed += 1
            own = latest_stamp(obj) if not stored.deleted else None
            before_ns, after_ns = self._between(revision)
            before_ns = max(filter(None, (before_ns, own)), default=None)
            at_ns = max(before_ns or 0, after_ns or 0, last_ns)
        self.result.streams[stored.stream] += 1
        origin = Origin(not_before_ns=before_ns)
        return Observation(stored.stream, row_type, at_ns, obj, json_text(obj), revision, origin)

    def _object(self, stored: _Stored) -> dict[str, Any] | None:
        problems, stream = self.result.problems, stored.stream
        try:
            obj = object_of(stored.value, self._unknown)
        except EncryptedError:
            problems[f"{stream} that are encrypted at rest, left out"] += 1
            return None
        except UnreadableError as error:
            problems[f"values of {stream} that cannot be read ({error}), left out"] += 1
            return None
        if obj is None:
            problems[f"values of {stream} of another kind or version, left out"] += 1
        return obj

    def _leave(self, stream: str) -> None:
        """Count a revision of a kept kind that does not say which it is."""
        self.result.problems[f"revisions of {stream} without a number, left out"] += 1

    def _settle_times(self) -> None:
        order = sorted(range(len(self._lease_revisions)), key=self._lease_revisions.__getitem__)
        revisions, times = array("q"), array("q")
        latest = 0
        for index in order:
            latest = max(latest, self._lease_times[index])
            revisions.append(self._lease_revisions[index])
            times.append(latest)
        self._lease_revisions, self._lease_times = revisions, times

    def _between(self, revision: int) -> tuple[int | None, int | None]:
        """The renewals of Leases right before and after a revision."""
        before = bisect_right(self._lease_revisions, revision)
        after = bisect_left(self._lease_revisions, revision)
        return (
            self._lease_times[before - 1] if before else None,
            self._lease_times[after] if after < len(self._lease_times) else None,
        )

    def _report(self) -> None:
        result = self.result
        if self._untimed:
            result.times = (
                "a store keeps no times: each row's lies between two renewals of Leases"
                if self._lease_times
                else "a store keeps no times and this one no Leases: each row has the latest that "
                "an object tells"
            )
        for what, times in self._unknown.most_common(5):
            result.problems[f"fields that this version does not know ({what}), left out"] += times
        for stream in STREAM_KINDS:
            if not result.streams[stream]:
                result.not_recorded[stream] = "the store has none, or keeps them elsewhere"


def _renewed_ns(value: bytes) -> int | None:
    """When a Lease was renewed, if its value can be read; `rows` says what cannot."""
    try:
        spec = (object_of(value, Counter()) or {}).get("spec")
    except (EncryptedError, UnreadableError):
        return None
    renewed = spec.get("renewTime") if isinstance(spec, dict) else None
    return _received(renewed)


def _received(text: Any) -> int | None:
    at_ns = parse_rfc3339(text) if isinstance(text, str) else None
    return at_ns if can_be_received(at_ns) else None


def stream_of_key(key: bytes) -> str | None:
    """The stream of a key like `/registry/pods/NAMESPACE/NAME`; the prefix may be another."""
    parts = key.split(b"/", 3)
    name = parts[2].decode("utf-8", "replace") if len(parts) > 3 else ""  # noqa: PLR2004
    return name if name in STREAM_KINDS else None


class EtcdReader(StoreReader):
    """Reads snapshots and the `db` file of a data directory."""

    def read(self, source: LineSource) -> None:
        """Take the revisions of one file."""
        if not is_bbolt(source.peek(64)):
            return
        path = _as_file(source, self._scratch)
        bolt = BoltFile(path, source.name)
        try:
            compacted = _revision(dict(bolt.bucket(b"meta")).get(b"finishedCompactRev", b""))
            for name, value in bolt.bucket(b"key"):
                revision = _revision(name)
                pair = dict(fields_of(value))
                stream = stream_of_key(_bytes(pair.get(1)))
                if stream is None:
                    continue
                if not revision:
                    self._leave(stream)
                    continue
                key = pair[1].decode("utf-8", "replace")
                deleted = name[_REVISION_BYTES:] == _TOMBSTONE
                created = pair.get(4, 0) == 1
                looked = revision <= compacted and not deleted
                stored = _Stored(stream, key, _bytes(pair.get(5)), deleted, created, looked)
                self.take(revision, key, stored)
        except IndexError as error:
            raise TraceFormatError(
                f"{source.name} is damaged: a value of its bucket key is cut off; take the "
                "snapshot again"
            ) from error
        finally:
            bolt.close()
        if compacted:
            self.result.remarks.append(
                f"etcd was compacted at revision {compacted:,}: before it, only the last state of "
                "each object is there"
            )


def _revision(name: bytes) -> int:
    """The revision that a key of a store says; 0 where there is none that can be."""
    found = int.from_bytes(name[:8], "big") if len(name) >= _REVISION_BYTES else 0
    return found if found <= INT64_MAX else 0


def _as_file(source: LineSource, scratch: Path) -> Path:
    """The file itself if it can be read anywhere in, else a copy."""
    if source.path is not None:
        with source.path.open("rb") as file:
            head = file.read(64)
        if is_bbolt(head) or head.startswith(SQLITE_MAGIC):
            return source.path
    scratch.mkdir(parents=True, exist_ok=True)
    copy = scratch / f"copy-{len(list(scratch.iterdir()))}"
    with copy.open("wb") as out:
        for chunk in source.chunks():
            out.write(chunk)
    return copy


class KineReader(StoreReader):
    """Reads the SQLite file of kine, which k3s keeps as server/db/state.db."""

    def read(self, source: LineSource) -> None:
        """Take the revisions of one file."""
        if not source.peek(len(SQLITE_MAGIC)).startswith(SQLITE_MAGIC):
            return
        path = _as_file(source, self._scratch)
        try:
            with stored_table(path, "kine") as connection:
                self._rows(connection)
        except sqlite3.DatabaseError as error:
            raise TraceFormatError(
                f"{source.name} is no database of kine ({error}): name k3s's server/db/state.db, "
                "copied while k3s was stopped or with its state.db-wal checkpointed"
            ) from error
        if source.path is not None and (log := beside(source.path)) is not None:
            self.result.problems[
                f"{log.name} lies beside it and is not read: what k3s wrote last is missing, until "
                f"`sqlite3 {source.path.name} 'PRAGMA wal_checkpoint'` puts it in"
            ] += 1

    def _rows(self, connection: sqlite3.Connection) -> None:
        (compacted,) = connection.execute(
            "SELECT coalesce(max(prev_revision), 0) FROM kine WHERE name = 'compact_rev_key'"
        ).fetchone()
        compacted = compacted if type(compacted) is int else 0
        query = "SELECT id, name, created, deleted, value, old_value FROM kine"
        for revision, name, created, deleted, value, old in connection.execute(query):
            stream = stream_of_key(_bytes(name))
            if stream is None:
                continue
            if type(revision) is not int or revision <= 0:
                self._leave(stream)
                continue
            key = name.decode("utf-8", "replace")
            looked = revision <= compacted and not deleted
            text, before = _bytes(value), _bytes(old)
            text = (before or text) if deleted else (text or before)
            self.take(
                revision,
                key,
                _Stored(stream, key, text, bool(deleted), bool(created), looked),
            )


class DeltaReader(StoreReader):
    """Reads delta snapshots of etcd-backup-restore: events with their times."""

    def read(self, source: LineSource) -> None:
        """Take the revisions of one file: a JSON array with its SHA-256 behind it."""
        text = bytearray()
        for chunk in source.chunks():
            text += chunk
            if len(text) > _DELTA_BYTES_MAX:
                raise TraceFormatError(
                    f"{source.name} has more than {_DELTA_BYTES_MAX >> 30} GiB: no delta snapshot "
                    "is so large"
                )
        check_values(text, source.name)
        events = delta_events(text)
        if events is None:
            raise TraceFormatError(
                f"{source.name} is no delta snapshot, or is cut off: it must be a JSON array of "
                "etcdEvent and time; copy it again from the bucket"
            )
        for event in events:
            self._event(event)

    def _event(self, event: Any) -> None:
        inner = event.get("etcdEvent") if isinstance(event, dict) else None
        pair = inner.get("kv") if isinstance(inner, dict) else None
        if not isinstance(pair, dict) or not isinstance(inner, dict):
            self.result.problems["entries that are no events, left out"] += 1
            return
        key, revision = _base64(pair.get("key")), pair.get("mod_revision")
        stream = stream_of_key(key)
        if stream is None:
            return
        if type(revision) is not int or not 0 < revision <= INT64_MAX:
            self._leave(stream)
            return
        text = key.decode("utf-8", "replace")
        deleted = inner.get("type") in (1, "DELETE")
        created = pair.get("create_revision") == revision
        value = _base64(pair.get("value"))
        at_ns = _received(event.get("time"))
        self.take(revision, text, _Stored(stream, text, value, deleted, created, at_ns=at_ns))


def delta_events(text: bytes | bytearray) -> list[Any] | None:
    """The events of a delta snapshot; None if it is none."""
    for body in (text[:-_HASH_BYTES], text):
        try:
            found = orjson.loads(body)
        except orjson.JSONDecodeError:
            continue
        return found if isinstance(found, list) else None
    return None


def _bytes(value: Any) -> bytes:
    """A field or cell that should hold bytes; nothing if another type stands there."""
    return value if type(value) is bytes else b""


def _base64(value: Any) -> bytes:
    if not isinstance(value, str):
        return b""
    try:
        return binascii.a2b_base64(value)
    except ValueError:
        return b""
