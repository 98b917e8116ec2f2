"""Files of etcd and kine whose pages and rows have one place in common, and numbers at the edges.

docs/trust.md: what a file may hold is bounded by its bytes, and a database's rows must be stored.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import orjson
import pytest

from tests.attack.answers import is_refusal, run
from tests.support.watchlog import job
from tests.unit.trace.importers import test_fuzz_stores as stores
from tests.unit.trace.importers.test_fuzz_stores import PAGE, Revision, field
from tracekit.trace.importers.report import _WORDS_MAX
from tracekit.trace.reading.reader import TraceReader

KEY = b"/registry/jobs/default/one"
JOB = orjson.dumps({"apiVersion": "batch/v1", "kind": "Job", **job("one", 5)})
CREATED = (
    "CREATE TABLE kine (id INTEGER PRIMARY KEY, name, created, deleted, prev_revision, "
    "value, old_value)"
)


def imported(kind: str, path: Path, tmp_path: Path) -> tuple[int, str, str]:
    return run("import", kind, str(path), "-o", str(tmp_path / "trace"))


#### etcd ####


def with_keys(path: Path, pages: bytes) -> Path:
    """A file of etcd whose bucket `key` is these pages."""
    stores.etcd(path, [])
    path.write_bytes(path.read_bytes()[: 3 * PAGE] + pages)
    return path


def test_entries_with_one_place_are_no_rows(tmp_path: Path) -> None:
    """Ten thousand entries of one megabyte stood in two, and became ten gigabytes on the disk."""
    count, value = 10_000, field(1, KEY) + field(5, os.urandom(1 << 20))
    name = struct.pack(">Q", 7) + b"_" + bytes(8)
    size = 16 * count
    heads = b"".join(
        struct.pack("<IIII", 0, size - 16 * at, len(name), len(value)) for at in range(count)
    )
    body = heads + name + value
    pages = -(-(16 + len(body)) // PAGE)
    page = struct.pack("<QHHI", 3, 2, count, pages - 1) + body
    answer = imported("etcd", with_keys(tmp_path / "db", page.ljust(pages * PAGE, b"\0")), tmp_path)
    assert is_refusal(answer)
    assert "entries of page 3 have one place" in answer[2]


def test_pages_with_one_place_are_read_once(tmp_path: Path) -> None:
    """Each page said that it goes on to the end of the file."""
    count = (PAGE - 16) // 16
    branch = struct.pack("<QHHI", 3, 1, count, 0)
    branch += b"".join(struct.pack("<IIQ", 0, 0, 4 + at) for at in range(count))
    leaves = b"".join(
        struct.pack("<QHHI", 4 + at, 2, 0, count - 1 - at).ljust(PAGE, b"\0") for at in range(count)
    )
    pages = branch.ljust(PAGE, b"\0") + leaves
    answer = imported("etcd", with_keys(tmp_path / "db", pages), tmp_path)
    assert is_refusal(answer)
    assert "several have one place" in answer[2]


@pytest.mark.parametrize("revision", [2**63, 2**64 - 1])
def test_a_revision_that_no_store_has_is_left_out(tmp_path: Path, revision: int) -> None:
    path = tmp_path / "db"
    lease = orjson.dumps({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "kcm"}, "spec": {"renewTime": "2026-03-01T10:00:00.000000Z"},
    })  # fmt: skip
    stores.etcd(path, [
        Revision(revision, b"/registry/leases/kube-system/kcm", lease), Revision(5, KEY, JOB),
    ])  # fmt: skip
    code, _, said = imported("etcd", path, tmp_path)
    assert code == 0
    assert "revisions of leases without a number, left out" in said


@pytest.mark.parametrize("kind", sorted(stores.WRITERS))
@pytest.mark.parametrize("at", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_a_lease_of_another_age_tells_no_time(tmp_path: Path, kind: str, at: str) -> None:
    path = tmp_path / "db"
    lease = orjson.dumps({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "kcm"}, "spec": {"renewTime": at},
    })  # fmt: skip
    rows = [Revision(4, b"/registry/leases/kube-system/kcm", lease), Revision(5, KEY, JOB)]
    stores.WRITERS[kind](path, rows)
    assert imported(kind, path, tmp_path)[0] == 0
    assert TraceReader(tmp_path / "trace").rows >= len(rows)


def test_a_delta_of_another_age_has_no_time(tmp_path: Path) -> None:
    path = tmp_path / "db"
    stores.delta(path, [Revision(5, KEY, JOB)])
    path.write_bytes(path.read_bytes()[:-32].replace(b"2026-03-01", b"9999-03-01"))
    assert imported("etcd-delta", path, tmp_path)[0] == 0


def test_problems_of_a_thousand_kinds_are_enough(tmp_path: Path) -> None:
    """Each unknown field, and each kind in a list, had a sentence of its own in the header."""
    path = tmp_path / "list.json"
    others = [{"apiVersion": "x/v1", "kind": f"K{n}", "metadata": {}} for n in range(3000)]
    items = [orjson.loads(JOB), *others]
    path.write_bytes(orjson.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert imported("kubectl", path, tmp_path)[0] == 0
    said = orjson.loads((tmp_path / "trace" / "trace.json").read_bytes())
    found = [s["report"]["problems"] for s in said["sessions"] if "report" in s] or [said]
    assert sum(found[0].values()) == 3000
    assert len(found[0]) == _WORDS_MAX + 1


#### kine ####


def database(path: Path, page_size: int, rows: list[bytes]) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA page_size = {page_size}")
        connection.execute(CREATED)
        connection.executemany(
            "INSERT INTO kine (name, created, value) VALUES (?, 1, ?)",
            [(KEY.decode(), row) for row in rows],
        )
        connection.commit()
    return path


def interior(child: int, head: bytes = b"", first: int | None = None) -> bytes:
    """A page that leads to one other 300 times."""
    page, at, children = bytearray(PAGE), PAGE, [first] * (first is not None) + [child] * 300
    page[: len(head)] = head
    pointers = b""
    for number in children:
        at -= 5
        page[at : at + 5] = struct.pack(">IB", number, 1)
        pointers += struct.pack(">H", at)
    page[len(head) : len(head) + 12] = struct.pack(">BHHHBI", 5, 0, len(children), at, 0, child)
    page[len(head) + 12 : len(head) + 12 + len(pointers)] = pointers
    return bytes(page)


def of_one_row(cell: bytes) -> bytes:
    at = PAGE - len(cell)
    head = struct.pack(">BHHHBH", 13, 0, 1, at, 0, at)
    return head.ljust(at, b"\0") + cell


def rows_without_end(path: Path) -> None:
    """Fifteen pages, each of which leads to the next 300 times: 10^37 rows."""
    data = database(path, PAGE, [JOB]).read_bytes()
    old, pages = data[PAGE : 2 * PAGE], len(data) // PAGE
    levels = [interior(pages + 1 + at) for at in range(15)]
    tree = data[:PAGE] + levels[0] + data[2 * PAGE :] + b"".join(levels[1:]) + old
    path.write_bytes(tree[:28] + struct.pack(">I", len(tree) // PAGE) + tree[32:])


def a_schema_without_end(path: Path) -> None:
    """The same of the schema, which SQLite reads before anything is asked."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(CREATED.replace("name", "name UNIQUE"))
        connection.commit()
    data = path.read_bytes()
    table, index = struct.unpack(">HH", data[108:112])
    pages = len(data) // PAGE
    leaves = of_one_row(data[table:PAGE]) + of_one_row(data[index:table])
    levels = b"".join(interior(pages + 4 + at) for at in range(14)) + interior(pages + 2)
    top = interior(pages + 3, data[:100], first=pages + 1)
    tree = top + data[PAGE:] + leaves + levels
    path.write_bytes(tree[:28] + struct.pack(">I", len(tree) // PAGE) + tree[32:])


@pytest.mark.parametrize("make", [rows_without_end, a_schema_without_end])
def test_a_tree_that_leads_to_itself_is_none(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "state.db"
    make(path)
    answer = imported("kine", path, tmp_path)
    assert is_refusal(answer)
    assert "2nd reference to page" in answer[2] or "without an end" in answer[2]


def test_what_lies_beside_the_database_is_named(tmp_path: Path) -> None:
    """Rows since the last checkpoint were missing, and nothing said so."""
    path = tmp_path / "state.db"
    database(path, PAGE, [JOB])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("INSERT INTO kine (name, value) VALUES ('/registry/jobs/a/b', '{}')")
        connection.commit()
        code, _, said = imported("kine", path, tmp_path)
    assert code == 0
    assert "state.db-wal lies beside it and is not read" in said
