"""Traces out of what the store kept: etcd's own file, kine's database, delta snapshots."""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
from collections import Counter

import pytest
import zstandard

from tests.support.watchlog import REPOSITORY
from tracekit.base.errors import TraceFormatError
from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.check.verdict import Verdict
from tracekit.judge.judged import Judge, resolve_era
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.importers.etcd.bbolt import BoltFile
from tracekit.trace.importers.etcd.stored import fields_of, object_of
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.reading.reader import TraceReader

DATA = REPOSITORY / "tests" / "data" / "etcd"
STREAMS = ("jobs", "pods", "events")


def imported(target, *names, others=()):
    header = TraceHeader(kubernetes_version="v1.36.3")
    results = import_files(
        ImportRequest([str(n) for n in names], target, header, others=[str(o) for o in others])
    )
    return TraceReader(target), results


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("stores")


def unpacked(path, name):
    data = zstandard.ZstdDecompressor().stream_reader((DATA / name).read_bytes())
    path.write_bytes(data.read())
    return path


@pytest.fixture(scope="module")
def db(place):
    return unpacked(place / "db", "v1.36.3-db.zst")


@pytest.fixture(scope="module")
def watch(place):
    return imported(place / "watch", DATA / "v1.36.3-watch.jsonl.zst")[0]


@pytest.mark.parametrize(
    ("kind", "store", "log"),
    [
        ("etcd", "v1.36.3-db.zst", "v1.36.3-watch.jsonl.zst"),
        ("etcd", "v1.36.3-etcd-3.6.16-snapshot.zst", "v1.36.3-etcd-3.6.16-watch.jsonl.zst"),
        ("kine", "v1.36.3-kine-0.17.5-state.zst", "v1.36.3-kine-0.17.5-watch.jsonl.zst"),
    ],
    ids=["etcd 3.5, its db file", "etcd 3.6, a snapshot", "kine, its SQLite database"],
)
def test_every_store_tells_what_the_watch_saw(tmp_path, kind, store, log):
    seen, _ = imported(tmp_path / "watch", DATA / log)
    told, results = imported(tmp_path / "store", unpacked(tmp_path / "db", store))
    assert results[0].kind == kind
    assert not results[0].problems
    same_as_watch(told, seen)
    report, found = verdicts(told)
    assert report.divergences == []
    assert found[Verdict.MATCH] >= 0.99 * verdicts(seen)[1][Verdict.MATCH]


@pytest.fixture(scope="module")
def revisions(db):
    """Every revision of the store: (revision, key, value, deleted, created, previous value)."""
    found, last = [], {}
    bolt = BoltFile(db, "db")
    for name, value in bolt.bucket(b"key"):
        pair = dict(fields_of(value))
        deleted = name[17:] == b"t"
        key, text = pair[1].decode(), pair.get(5, b"")
        revision = int.from_bytes(name[:8], "big")
        found.append((revision, key, text, deleted, pair.get(4) == 1, last.get(key, b"")))
        last[key] = text
    bolt.close()
    return found


def states(reader, stream):
    rows = reader.table(("rv", "type", "raw"), streams=[stream]).to_pylist()
    kinds = ("LIST", "ADDED", "MODIFIED", "DELETED")
    return {
        (r["rv"], r["type"] == "DELETED"): json.loads(r["raw"]) for r in rows if r["type"] in kinds
    }


def verdicts(reader):
    report = Judge(reader, resolve_era(reader, None, None)).report()
    return report, Counter(j.verdict for j in report.judgements)


def same_as_watch(reader, watch):
    for stream in STREAMS:
        told, seen = states(reader, stream), states(watch, stream)
        assert told.keys() == seen.keys()
        for key, obj in seen.items():
            assert {**told[key], "kind": 0, "apiVersion": 0} == {**obj, "kind": 0, "apiVersion": 0}


class TestEtcd:
    def test_every_revision_and_object_is_what_the_watch_saw(self, place, db, watch):
        reader, results = imported(place / "etcd", db)
        assert results[0].kind == "etcd"
        assert not results[0].problems
        same_as_watch(reader, watch)

    @pytest.mark.full
    def test_verdicts_stand_but_for_those_that_rest_on_times(self, place, db, watch):
        reader, _ = imported(place / "judged", db)
        report, found = verdicts(reader)
        assert report.divergences == []
        assert found[Verdict.MATCH] >= 0.99 * verdicts(watch)[1][Verdict.MATCH]
        assert "keeps no times" in reader.header.scope["times"]

    @pytest.mark.full
    def test_times_are_bounded_by_the_renewals_of_leases(self, place, db, watch):
        reader, _ = imported(place / "timed", db)
        seen = {
            (r["stream"], r["rv"]): r["recv_ns"]
            for r in watch.table(("stream", "rv", "recv_ns", "type")).to_pylist()
            if r["type"] in ("ADDED", "MODIFIED")
        }
        rows = reader.table(("stream", "rv", "recv_ns", "not_before_ns"), streams=["jobs", "pods"])
        second = 1_000_000_000
        for row in rows.to_pylist():
            at = seen.get((row["stream"], row["rv"]))
            if at is not None:
                assert row["not_before_ns"] <= at
                assert row["recv_ns"] >= at - second

    @pytest.mark.full
    def test_through_a_pipe_and_compressed(self, place, watch):
        reader, _ = imported(place / "zst", DATA / "v1.36.3-db.zst")
        same_as_watch(reader, watch)

    @pytest.mark.parametrize("part", [0.5, 0.01])
    def test_half_a_file_is_refused(self, db, tmp_path, part):
        data = db.read_bytes()
        half = tmp_path / "half"
        half.write_bytes(data[: int(len(data) * part) // 4096 * 4096])
        with pytest.raises(TraceFormatError, match="damaged"):
            imported(tmp_path / "t", half)

    def test_damaged_meta_pages_are_refused(self, db, tmp_path):
        data = bytearray(db.read_bytes())
        for page in (0, 4096):
            data[page + 40] ^= 1
        broken = tmp_path / "broken"
        broken.write_bytes(data)
        with pytest.raises(TraceFormatError, match="neither of its two meta pages"):
            imported(tmp_path / "t", broken)

    @pytest.mark.full
    def test_with_the_watch_each_revision_is_one_observation(self, place, db, watch):
        reader, _ = imported(place / "both", DATA / "v1.36.3-watch.jsonl.zst", others=[db])
        for stream in STREAMS:
            assert states(reader, stream).keys() == states(watch, stream).keys()
        assert "times" not in reader.header.scope


def test_encrypted_values_are_said_and_left_out(tmp_path):
    path = kine(tmp_path / "state.db", [
        (1, "/registry/jobs/ns/a", b"k8s:enc:aescbc:v1:key1:xxxx", False, True, b""),
        (2, "/registry/jobs/ns/b", json.dumps({"kind": "Job", "apiVersion": "batch/v1",
         "metadata": {"name": "b", "namespace": "ns", "uid": "u"}}).encode(), False, True, b""),
    ])  # fmt: skip
    reader, results = imported(tmp_path / "t", path)
    assert [r["name"] for r in reader.table(("name",)).to_pylist()] == ["b"]
    assert any("encrypted at rest" in problem for problem in results[0].problems)


def kine(path, revisions, compacted=0):
    """A database with the columns of kine's (pkg/drivers/sqlite)."""
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE kine (id INTEGER PRIMARY KEY AUTOINCREMENT, name INTEGER, "
            "created INTEGER, deleted INTEGER, create_revision INTEGER, prev_revision INTEGER, "
            "lease INTEGER, value BLOB, old_value BLOB)"
        )
        connection.execute(
            "INSERT INTO kine (id, name, created, deleted, prev_revision) "
            "VALUES (0, 'compact_rev_key', 1, 0, ?)", (compacted,)
        )  # fmt: skip
        connection.executemany(
            "INSERT INTO kine (id, name, value, deleted, created, old_value) "
            "VALUES (?, ?, ?, ?, ?, ?)", revisions
        )  # fmt: skip
    return path


def test_kine(place, watch, revisions):
    reader, results = imported(place / "kine", kine(place / "state.db", revisions))
    assert results[0].kind == "kine"
    same_as_watch(reader, watch)
    assert verdicts(reader)[0].divergences == []


def test_delta_snapshots_have_times(place, watch, revisions):
    seen = {
        r["rv"]: r["recv_ns"]
        for r in watch.table(("rv", "recv_ns"), types=["ADDED", "MODIFIED", "DELETED"]).to_pylist()
    }
    events, at_ns = [], min(seen.values())
    created = {}
    for revision, key, text, deleted, new, _ in revisions:
        at_ns = max(at_ns, seen.get(revision, at_ns))
        if new:
            created[key] = revision
        pair = {"key": base64.b64encode(key.encode()).decode(), "mod_revision": revision,
                "create_revision": created.get(key, 0)}  # fmt: skip
        if not deleted:
            pair["value"] = base64.b64encode(text).decode()
        event = {"kv": pair, **({"type": 1} if deleted else {})}
        events.append({"etcdEvent": event, "time": format_rfc3339(at_ns)})
    text = json.dumps(events).encode()
    path = place / "Incr-00000001-00002000-1795239000"
    path.write_bytes(text + hashlib.sha256(text).digest())
    reader, results = imported(place / "delta", path)
    assert results[0].kind == "etcd-delta"
    same_as_watch(reader, watch)
    assert verdicts(reader)[0].divergences == []
    assert "times" not in reader.header.scope


def test_wrong_databases_are_refused(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE other (id INTEGER)")
    with pytest.raises(TraceFormatError, match="no database of kine"):
        imported(tmp_path / "t", path)


def test_fields_that_are_not_known_are_counted(revisions):
    unknown = Counter()
    for _, _, text, deleted, _, _ in revisions:
        if not deleted:
            object_of(text, unknown)
    assert not unknown
    job = next(t for _, k, t, d, _, _ in revisions if k.startswith("/registry/jobs/") and not d)
    envelope = dict(fields_of(job[4:]))
    strange = b"\xba\x3e\x01x"  # field 999, one byte
    raw = envelope[2] + strange
    value = b"k8s\0" + b"\x0a" + bytes([len(envelope[1])]) + envelope[1]
    size, length = len(raw), b""
    while size >= 0x80:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    value += b"\x12" + length + bytes([size]) + raw
    assert object_of(value, unknown)["kind"] == "Job"
    assert unknown == {"batch.Job field 999": 1}


def test_a_watch_gives_its_times_to_a_snapshot_that_is_the_better_source(place, db):
    both = place / "snapshot-first"
    snapshot, _ = imported(place / "snapshot", db)
    log = DATA / "v1.36.3-watch.jsonl.zst"
    reader, _ = imported(both, snapshot.path, others=[log])
    seen = imported(place / "timed-log", log)[0].table(
        ("rv", "stream", "recv_ns"), types=["ADDED", "MODIFIED", "DELETED", "LIST"]
    )
    timed = {(r["rv"], r["stream"]): r["recv_ns"] for r in seen.to_pylist()}
    rows = reader.table(("rv", "stream", "recv_ns"), streams=["pods"], types=["MODIFIED"])
    assert all(timed[r["rv"], r["stream"]] == r["recv_ns"] for r in rows.to_pylist())
    assert "times" not in reader.header.scope
