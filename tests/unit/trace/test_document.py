"""The format's document says what the schema says, and its examples run."""

from __future__ import annotations

import re

import duckdb
import pyarrow.dataset as ds
import pytest

from tests.support.watchlog import REPOSITORY
from tests.unit.trace.test_reader import SAMPLE, write
from tracekit.trace.format.document import with_columns
from tracekit.trace.format.model import RowType

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
    (block,) = re.findall(r"```sql\n(.*?)```", TEXT, re.DOTALL)
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
