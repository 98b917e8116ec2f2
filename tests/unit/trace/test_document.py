"""The format's document says what the schema says, and its examples run."""

from __future__ import annotations

import re

import duckdb
import pyarrow.dataset as ds
import pytest

from tests.support.watchlog import REPOSITORY, write_log
from tests.unit.trace.test_formats import golden_log
from tests.unit.trace.test_reader import SAMPLE, write
from tracekit.trace.format.document import with_columns
from tracekit.trace.format.model import RowType
from tracekit.trace.importers.source import LineSource
from tracekit.trace.importers.watch import WatchImporter
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.whole import compact_in_place
from tracekit.trace.writing.writer import TraceWriter

TEXT = (REPOSITORY / "docs" / "trace-format.md").read_text("utf-8")


def test_the_column_tables_are_those_of_the_schema():
    assert with_columns(TEXT) == TEXT, (
        "run: python -m tracekit.trace.format.document docs/trace-format.md"
    )


def test_every_row_type_is_explained():
    for row_type in RowType:
        assert f"`{row_type}`" in TEXT


def test_the_duckdb_examples_run(tmp_path):
    write(tmp_path / "my-trace", SAMPLE, segment_rows=3)
    block = re.findall(r"```sql\n(.*?)```", TEXT, re.DOTALL)[0]
    queries = [
        q for q in block.replace("my-trace", str(tmp_path / "my-trace")).split(";") if q.strip()
    ]
    pods, states = (duckdb.sql(query).fetchall() for query in queries)
    assert sorted(pods) == [("x", "a", 1, None), ("y", "b", 1, None)]
    assert sorted(states) == [("a", "{}"), ("b", "{}")]


def test_pyarrow_reads_it_alone(tmp_path):
    write(tmp_path / "t", SAMPLE, segment_rows=3)
    log = ds.dataset(tmp_path / "t" / "log", format="parquet")
    table = log.to_table(
        columns=["seq", "finalizers", "owners"],
        filter=(ds.field("namespace") == "y") & (ds.field("job") == "b"),
    ).sort_by("seq")
    assert table["seq"].to_pylist() == [0, 1, 6]
    assert table["owners"].to_pylist()[1][0]["name"] == "b"


def test_pandas_reads_it_alone(tmp_path):
    pd = pytest.importorskip("pandas")
    write(tmp_path / "t", SAMPLE, segment_rows=3)
    frame = pd.read_parquet(
        tmp_path / "t" / "log", columns=["seq", "name"], filters=[("stream", "==", "jobs")]
    )
    assert sorted(frame["name"]) == ["a", "b", "b"]


@pytest.fixture
def narrow(tmp_path):
    """A narrow trace, and its rows by tracekit."""
    path = tmp_path / "my-trace"
    log = write_log(tmp_path / "log", golden_log())
    WatchImporter(lambda: TraceWriter(path, segment_rows=12)).run([LineSource(str(log))])
    compact_in_place(path)
    assert TraceReader(path).kept_rows
    rows = TraceReader(path).table(("seq", "recv_ns", "rv", "name", "raw")).to_pylist()
    return path, rows


def test_the_macro_puts_narrow_rows_together(narrow):
    path, rows = narrow
    macro = re.findall(r"```sql\n(.*?)```", TEXT, re.DOTALL)[1]
    connection = duckdb.connect()
    define, ask = macro.replace("my-trace", str(path)).split(";\n")[:2]
    connection.execute(define)
    found = connection.sql(
        "SELECT seq, recv_ns, rv, name, raw FROM narrow_rows($files) ORDER BY seq",
        params={"files": f"{path}/log/*.parquet"},
    )
    assert found.fetchall() == [tuple(row.values()) for row in rows]
    assert ('{"active":1}',) in connection.sql(ask).fetchall()


def test_pyarrow_puts_narrow_rows_together(narrow):
    path, rows = narrow
    code = next(c for c in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL) if "known" in c)
    scope = {}
    exec(code, scope)  # noqa: S102 - the document's own
    found = [row for file in sorted((path / "log").iterdir()) for row in scope["narrow_rows"](file)]
    found.sort(key=lambda row: row["seq"])
    assert [{name: row[name] for name in rows[0]} for row in found] == rows
