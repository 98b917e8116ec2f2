"""Rows whose values are made when somebody asks: the same values, and no others."""

from __future__ import annotations

import pyarrow as pa

from tracekit.trace.reading.lazy_rows import lazy_rows

_CONDITION = pa.struct([("type", pa.string()), ("at_ns", pa.int64())])
ROWS = [
    {"stream": "jobs", "seq": 0, "spec": "{}", "names": ["a", "b"], "conditions": []},
    {"stream": "pods", "seq": 1, "spec": None, "names": None, "conditions": None},
    {"stream": "jobs", "seq": 2, "spec": '{"a":1}', "names": [], "conditions": [
        {"type": "Complete", "at_ns": 7}, {"type": None, "at_ns": None}]},
    {"stream": None, "seq": None, "spec": "{}", "names": ["c"], "conditions": [
        {"type": "Failed", "at_ns": 9}]},
]  # fmt: skip
SCHEMA = pa.schema(
    [
        ("stream", pa.string()),
        ("seq", pa.int64()),
        ("spec", pa.string()),
        ("names", pa.list_(pa.string())),
        ("conditions", pa.list_(_CONDITION)),
    ]
)


def _as_dictionaries(table: pa.Table) -> pa.Table:
    return table.set_column(2, "spec", table["spec"].dictionary_encode())


def test_they_have_the_values_of_the_table():
    table = pa.Table.from_pylist(ROWS, SCHEMA)
    later = pa.concat_tables([table, table]).slice(3, 4)  # a part of batches, from within
    for whole in (table, later, _as_dictionaries(table)):
        expected = sorted(map(repr, whole.to_pylist()))
        assert sorted(repr(dict(row)) for (row,) in lazy_rows([whole])) == expected
        batches = whole.combine_chunks().to_batches()
        assert sorted(repr(dict(row)) for (row,) in lazy_rows(batches)) == expected


def test_those_of_a_stream_keep_their_order():
    table = pa.Table.from_pylist([{"stream": "jobs", "seq": n} for n in (3, 1, 2)])
    assert [row["seq"] for (row,) in lazy_rows([table])] == [3, 1, 2]
    assert [seq for _, seq in lazy_rows([table], ["seq"])] == [3, 1, 2]


def test_what_nobody_asks_for_is_not_made():
    rows = [row for (row,) in lazy_rows([pa.Table.from_pylist(ROWS, SCHEMA)])]
    jobs = [row for row in rows if row["stream"] == "jobs"]
    assert jobs[1]["conditions"][0]["type"] == "Complete"
    made = {id(row._cells): sorted(row._cells) for row in rows}
    assert sorted(made.values()) == [["conditions", "stream"], ["stream"], ["stream"]]
    lists = jobs[1]._cells["conditions"]._made
    assert lists[0] is None
    assert lists[1] is not None
