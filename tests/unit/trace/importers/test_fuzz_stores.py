"""Stores cut, doubled and filled with what no server writes: a sentence or a trace, no loss unsaid.

Each revision of a kind that a trace keeps is a row, or counted as left out.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
import struct
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.watchlog import REPOSITORY
from tests.unit.trace.importers.test_fuzz import Imported, compact, objects
from tracekit.base.errors import TraceFormatError
from tracekit.trace.importers.etcd.bbolt import BoltFile
from tracekit.trace.importers.etcd.stored import fields_of
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.reading.reader import TraceReader

DATA = REPOSITORY / "tests" / "data" / "etcd"
PAGE = 4096


class Revision(NamedTuple):
    revision: int
    key: bytes
    value: bytes
    deleted: bool = False
    created: bool = False


#### Files of each kind ####


def field(number: int, value: bytes | int) -> bytes:
    """A field of a message in the wire format."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))


def fnv64a(data: bytes) -> int:
    result = 0xCBF29CE484222325
    for byte in data:
        result = (result ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return result


def leaf(number: int, entries: list[tuple[int, bytes, bytes]]) -> bytes:
    """A leaf page of flags, keys and values, with as much overflow as it needs."""
    heads, texts, size = b"", b"", 16 * len(entries)
    for at, (flags, key, value) in enumerate(entries):
        heads += struct.pack("<IIII", flags, size - 16 * at + len(texts), len(key), len(value))
        texts += key + value
    pages = -(-(16 + size + len(texts)) // PAGE)
    head = struct.pack("<QHHI", number, 2, len(entries), pages - 1)
    return (head + heads + texts).ljust(pages * PAGE, b"\0")


def etcd(path: Path, revisions: list[Revision]) -> None:
    """A bbolt file with etcd's two buckets."""
    entries = []
    for sub, one in enumerate(revisions):
        name = struct.pack(">Q", one.revision) + b"_" + struct.pack(">Q", sub)
        value = field(1, one.key) + field(5, one.value) + (field(4, 1) if one.created else b"")
        entries.append((0, name + (b"t" if one.deleted else b""), value))
    keys = leaf(3, entries)
    inline = struct.pack("<QQ", 0, 0) + struct.pack("<QHHI", 0, 2, 0, 0)
    root = leaf(
        2, [(1, b"key", struct.pack("<QQ", 3, 0)), (1, b"meta", inline)]
    )  # each bucket's head
    metas = b""
    for number in (0, 1):
        meta = struct.pack("<IIIIQQQQQ", 0xED0CDAED, 2, PAGE, 0, 2, 0, 99, 99, number)
        page = struct.pack("<QHHI", number, 4, 0, 0) + meta + struct.pack("<Q", fnv64a(meta))
        metas += page.ljust(PAGE, b"\0")
    path.write_bytes(metas + root + keys)


def kine(path: Path, revisions: list[Revision]) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE kine (id INTEGER, name INTEGER, created INTEGER, deleted INTEGER, "
            "create_revision INTEGER, prev_revision INTEGER, lease INTEGER, value BLOB, "
            "old_value BLOB)"
        )
        connection.executemany(
            "INSERT INTO kine (id, name, value, deleted, created) VALUES (?, ?, ?, ?, ?)",
            [(r.revision, r.key, r.value, r.deleted, r.created) for r in revisions],
        )


def delta(path: Path, revisions: list[Revision]) -> None:
    events = []
    for one in revisions:
        pair = {"key": base64.b64encode(one.key).decode(), "mod_revision": one.revision,
                "create_revision": one.revision if one.created else 1,
                "value": base64.b64encode(one.value).decode()}  # fmt: skip
        event = {"kv": pair, **({"type": 1} if one.deleted else {})}
        events.append({"etcdEvent": event, "time": "2026-03-01T10:00:00Z"})
    text = compact(events)
    path.write_bytes(text + hashlib.sha256(text).digest())


WRITERS = {"etcd": etcd, "kine": kine, "etcd-delta": delta}


#### What stands in them ####


@cache
def stored() -> tuple[bytes, ...]:
    """Values as a real API server stored them: a few of each kind that a trace keeps."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "db"
        packed = (DATA / "v1.36.3-db.zst").read_bytes()
        path.write_bytes(zstandard.ZstdDecompressor().stream_reader(packed).read())
        bolt = BoltFile(path, "db")
        found: dict[bytes, list[bytes]] = {}
        for name, value in bolt.bucket(b"key"):
            pair = dict(fields_of(value))
            if not name.endswith(b"t") and 5 in pair:
                found.setdefault(pair[1].split(b"/")[2], []).append(pair[5])
        bolt.close()
    kinds = (b"jobs", b"pods", b"cronjobs", b"events", b"leases", b"namespaces")
    return tuple(text for kind in kinds for text in found.get(kind, ())[:4])


STREAMS = (b"jobs", b"pods", b"cronjobs", b"events", b"leases", b"namespaces", b"resourcequotas")


@st.composite
def values(draw: st.DrawFn) -> bytes:
    """A value: whole, cut, with bytes changed, in another encoding, or something else."""
    text = draw(st.sampled_from((*stored(), *map(compact, objects()))))
    how = draw(st.sampled_from(("whole", "whole", "whole", "cut", "changed", "other")))
    if how == "cut":
        return text[: draw(st.integers(0, len(text)))]
    if how == "changed":
        changed = bytearray(text)
        for at in draw(st.lists(st.integers(0, len(text) - 1), min_size=1, max_size=4)):
            changed[at] = draw(st.integers(0, 255))
        return bytes(changed)
    if how == "other":
        other = json.dumps({"kind": "Pöd", "metadata": 7, "spec": None}, ensure_ascii=False)
        return draw(
            st.sampled_from(
                (
                    *(b"", b"null", b"[]", b"{}", b"{", b"k8s\0", b"k8s:enc:aescbc:v1:key1:x"),
                    *(other.encode("latin-1"), other.encode("utf-16"), other.encode()),
                    b'{"spec":null,"metadata":null}',
                    b'{"spec":{"renewTime":{}},"metadata":{"name":[]}}',
                )
            )
        )
    return text


@st.composite
def histories(draw: st.DrawFn) -> list[Revision]:
    """Revisions of some objects, among them keys of other kinds; in any order, some twice."""
    found = []
    for number in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from((*STREAMS, b"configmaps", b"")))
        name = draw(st.sampled_from((b"a", b"b", b"\xff", "ä".encode(), b"x/y")))
        key = b"/registry/" + kind + b"/ns/" + name
        deleted = draw(st.booleans()) and draw(st.booleans())
        found.append(Revision(number + 1, key, draw(values()), deleted, draw(st.booleans())))
    doubled = draw(st.lists(st.sampled_from(found), max_size=3))
    return draw(st.permutations(found + doubled))


def imported(kind: str, *paths: Path) -> Imported | str:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "trace"
        try:
            (result,) = import_files(ImportRequest([str(p) for p in paths], target, kind=kind))
        except TraceFormatError as error:
            return str(error)
        return Imported(result, TraceReader(target).rows)


def check_counts(kind: str, data: st.DataObject) -> None:
    """Each revision of a kept kind is a row, or counted as left out."""
    revisions = data.draw(histories())
    kept = [r for r in revisions if r.key.split(b"/")[2] in STREAMS]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        WRITERS[kind](path, revisions)
        done = imported(kind, path)
    if isinstance(done, str):
        assert "\n" not in done
        assert not any(r.value in stored() and not r.deleted for r in kept)
        return
    problems = done.result.problems
    named = sum(n for what, n in problems.items() if what.endswith((", left out", "taken once")))
    named -= sum(n for what, n in problems.items() if what.startswith("fields that"))
    assert done.rows + named == len(kept), problems


def check_cut(kind: str, data: st.DataObject) -> None:
    """Cut, with pages and bytes changed, doubled: a sentence or a trace."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        WRITERS[kind](path, data.draw(histories()))
        content = bytearray(path.read_bytes())
        how = data.draw(st.sampled_from(("cut", "changed", "doubled", "pages")))
        if how == "cut":
            content = content[: data.draw(st.integers(0, len(content)))]
        elif how == "doubled":
            content = content * 2
        elif how == "pages" and len(content) > 2 * PAGE:
            one, two = (data.draw(st.integers(0, len(content) // PAGE - 1)) * PAGE for _ in "ab")
            content[one : one + PAGE] = content[two : two + PAGE]
        for at in data.draw(st.lists(st.integers(0, max(0, len(content) - 1)), max_size=6)):
            content[at : at + 1] = bytes([data.draw(st.integers(0, 255))])
        path.write_bytes(content)
        said = imported(kind, path)
    assert isinstance(said, Imported) or "\n" not in said


_QUICK = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
_LONG = settings(_QUICK, max_examples=1_000, derandomize=False)


@pytest.mark.parametrize("kind", WRITERS)
@_QUICK
@given(data=st.data())
def test_each_revision_is_kept_or_named(kind: str, data: st.DataObject) -> None:
    check_counts(kind, data)


@pytest.mark.parametrize("kind", WRITERS)
@_QUICK
@given(data=st.data())
def test_what_is_broken_is_a_sentence_or_a_trace(kind: str, data: st.DataObject) -> None:
    check_cut(kind, data)


@pytest.mark.nightly
@pytest.mark.parametrize("check", [check_counts, check_cut])
@pytest.mark.parametrize("kind", WRITERS)
@_LONG
@given(data=st.data())
def test_the_same_for_a_long_time(
    kind: str, check: Callable[[str, st.DataObject], None], data: st.DataObject
) -> None:
    check(kind, data)


def test_a_store_that_is_given_twice_counts_what_it_took_once(tmp_path: Path) -> None:
    revisions = [Revision(7, b"/registry/jobs/ns/job-0", compact(objects()[0]), created=True)]
    for name in ("a", "b"):
        etcd(tmp_path / name, revisions)
    done = imported("etcd", tmp_path / "a", tmp_path / "b")
    assert isinstance(done, Imported)
    assert done.rows == 1
    assert done.result.problems == {"revisions that are there several times, taken once": 1}


@pytest.mark.parametrize(
    "value",
    [
        b'{"kind":"Lease","spec":null}',
        b'{"kind":"Lease","spec":[1]}',
        # A time of the year 300 million, and a number of more than 64 bits.
        b"k8s\0" + field(1, field(1, b"coordination.k8s.io/v1") + field(2, b"Lease"))
        + field(2, field(2, field(4, field(1, 1 << 62)))),
        b"k8s\0" + field(1, field(1, b"coordination.k8s.io/v1") + field(2, b"Lease"))
        + field(2, field(2, b"\x10" + b"\xff" * 12 + b"\1")),
    ],
)  # fmt: skip
def test_values_that_no_server_writes_are_no_fault(tmp_path: Path, value: bytes) -> None:
    job = Revision(8, b"/registry/jobs/ns/job-0", compact(objects()[0]))
    etcd(tmp_path / "db", [Revision(7, b"/registry/leases/ns/l", value), job])
    assert isinstance(imported("etcd", tmp_path / "db"), Imported)
