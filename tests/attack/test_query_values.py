"""Values of every type of DuckDB at its edges, in every output: exact, or refused in one sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.support.traces import TRACES, import_log
from tracekit.base.errors import UsageError
from tracekit.report.rows import FORMATS, write_rows
from tracekit.sql.messages import QueryError
from tracekit.sql.session import Session

#: An expression, and what `-o json` has of it.
VALUES: list[tuple[str, Any]] = [
    ("TIMETZ '12:00:00.5+05:30'", "12:00:00.5+05:30"),
    ("TIMETZ '24:00:00-15:59:59'", "24:00:00-15:59:59"),
    ("[TIMETZ '12:00:00+05', NULL]", ["12:00:00+05", None]),
    ("{'a': {'b': MAP {'k': [TIMETZ '12:00:00+05']}}}", {"a": {"b": {"k": ["12:00:00+05"]}}}),
    ("MAP {TIMETZ '12:00:00+05': 1}", {"12:00:00+05": 1}),
    ("TIME '24:00:00'", "24:00:00"),
    ("[TIME '24:00:00']", ["24:00:00"]),
    ("TIME '23:59:59.999999'", "23:59:59.999999"),
    ("TIME_NS '12:00:00.000000789'", "12:00:00.000000789"),
    ("TIMESTAMP 'infinity'", "infinity"),
    ("TIMESTAMPTZ '-infinity'", "-infinity"),
    ("DATE 'infinity'", "infinity"),
    ("[DATE 'infinity', DATE '2024-01-01']", ["infinity", "2024-01-01"]),
    ("{'a': [TIMESTAMP 'infinity']}", {"a": ["infinity"]}),
    ("MAP {DATE 'infinity': 1}", {"infinity": 1}),
    ("DATE '5877641-06-24'", "5877641-06-24"),
    ("DATE '-5877641-06-25'", "5877642-06-25 (BC)"),
    ("TIMESTAMPTZ '290000-01-01 00:00:00+00'", "290000-01-01 00:00:00+00"),
    ("TIMESTAMP_S '9999-12-31 23:59:59'", "9999-12-31T23:59:59Z"),
    ("TIMESTAMP_MS '2024-01-01 00:00:00.123'", "2024-01-01T00:00:00.123000Z"),
    ("TIMESTAMP_NS '2024-01-01 00:00:00.123456789'", "2024-01-01T00:00:00.123456789Z"),
    ("TIMESTAMPTZ '2024-01-01 00:00:00.5+02'", "2023-12-31T22:00:00.500000Z"),
    ("INTERVAL '1 year 2 months 3 days 4.000005 seconds'", "1 year 2 months 3 days 00:00:04.000005"),
    ("INTERVAL '-1 month 1 day -1 second'", "-1 month 1 day -00:00:01"),
    ("to_microseconds(9223372036854775807)", "2562047788:00:54.775807"),
    ("[to_years(1), NULL]", ["1 year", None]),
    ("'10110'::BIT", "10110"),
    ("['10'::BIT]", ["10"]),
    ("uuid '00000000-0000-0000-0000-00000000ffff'", "00000000-0000-0000-0000-00000000ffff"),
    ("(2::HUGEINT ** 126)::HUGEINT", str(2**126)),
    ("170141183460469231731687303715884105727::HUGEINT", str(2**127 - 1)),
    ("-170141183460469231731687303715884105727::HUGEINT - 1", str(-(2**127))),
    ("[170141183460469231731687303715884105727::HUGEINT]", [str(2**127 - 1)]),
    ("340282366920938463463374607431768211455::UHUGEINT", str(2**128 - 1)),
    ("18446744073709551615::UBIGINT", 2**64 - 1),
    ("(-9223372036854775808)::BIGINT", -(2**63)),
    ("9007199254740993::BIGINT", 2**53 + 1),
    ("union_value(num := 2)", 2),
    ("union_value(at := TIMETZ '12:00:00+05')", "12:00:00+05"),
    ("MAP {'a': 1, 'b': NULL}", {"a": 1, "b": None}),
    ("MAP {1: 'x', 2: 'y'}", {"1": "x", "2": "y"}),
    ("MAP {[1]: 'x'}", {"[1]": "x"}),
    ("MAP {{'a': 1}: 'x'}", {'{"a": 1}': "x"}),
    ("MAP {'ab'::BLOB: 1}", {"YWI=": 1}),
    ("MAP {'nan'::DOUBLE: 1}", {"nan": 1}),
    ("['nan'::DOUBLE, 'inf', '-inf', NULL]", ["nan", "inf", "-inf", None]),
    ("{'a': 'nan'::FLOAT, 'b': ['inf'::DOUBLE]}", {"a": "nan", "b": ["inf"]}),
    ("-0.0::DOUBLE", -0.0),
    ("5e-324", 5e-324),
    ("'a'::ENUM('a', 'b')", "a"),
    ("['a'::ENUM('a', 'b')]", ["a"]),
    ("from_hex('00ff')", "AP8="),
    ("-99999999999999999999999999999999999999::DECIMAL(38, 0)", "-" + "9" * 38),
    ("1.10::DECIMAL(38, 10)", "1.1000000000"),
    ("3::BIGNUM", "3"),
    ("1::VARIANT", "1"),
    ("'POINT (1 2)'::GEOMETRY", "POINT (1 2)"),
    ("'{\"a\": 1}'::JSON", '{"a": 1}'),
    ("[1, 2]::INT[2]", [1, 2]),
    ("ROW(1, 2)", {"element1": 1, "element2": 2}),
    ("ROW(1, BIT '1')", "(1, 1)"),
    ("chr(0)", "\0"),
    ("NULL", None),
]  # fmt: skip
#: What Parquet has not; said in a sentence.
NOT_IN_PARQUET = (
    "TIME '24:00:00'",
    "[TIME '24:00:00']",
    f"{2**127 - 1}::HUGEINT",
    f"-{2**127 - 1}::HUGEINT - 1",
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    trace = tmp_path_factory.mktemp("values") / "v1.36.3-twins"
    import_log(TRACES / trace.name / "watch.jsonl.zst", trace, trace.name)
    with closing(Session([trace])) as opened:
        yield opened


def written(session: Session, query: str, output: str) -> bytes:
    out = TextIOWrapper(BytesIO(), encoding="utf-8")
    write_rows(session.table(query), output, out)
    out.flush()
    return out.buffer.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("value", "expected"), VALUES, ids=[value for value, _ in VALUES])
def test_json_is_exact(session: Session, value: str, expected: Any) -> None:
    (row,) = json.loads(written(session, f"SELECT {value} AS v", "json"))
    assert repr(row) == repr({"v": expected})


def test_every_output_takes_every_value(session: Session, tmp_path: Path) -> None:
    for value, expected in VALUES:
        for output in FORMATS:
            if output == "parquet" and value in NOT_IN_PARQUET:
                with pytest.raises(UsageError, match="Parquet cannot hold these values"):
                    written(session, f"SELECT {value} AS v", output)
                continue
            found = written(session, f"SELECT {value} AS v", output)
            if output == "parquet":
                (tmp_path / "rows.parquet").write_bytes(found)
                path = tmp_path / "rows.parquet"
                (kept,) = duckdb.read_parquet(str(path)).project("v::VARCHAR").fetchall()[0]
                (asked,) = duckdb.sql(f"SELECT ({value})::VARCHAR").fetchall()[0]
                if not any(other in value for other in ("TIMESTAMPTZ", "union", "ROW")):
                    assert kept == asked, value
            elif isinstance(expected, str) and expected.isprintable() and "T" not in expected:
                assert expected.encode() in found.replace(b'""', b'"').replace(b"\\", b""), value


def test_columns_of_one_name_are_told_apart(session: Session, tmp_path: Path) -> None:
    """`-o json` kept the last of them."""
    query = "SELECT 1 AS a, 2 AS a, 3 AS a_1, 4 AS A"
    assert json.loads(written(session, query, "json")) == [{"a": 1, "a_2": 2, "a_1": 3, "A": 4}]
    assert json.loads(written(session, query, "jsonl")) == {"a": 1, "a_2": 2, "a_1": 3, "A": 4}
    (tmp_path / "rows.parquet").write_bytes(written(session, query, "parquet"))
    kept = duckdb.read_parquet(str(tmp_path / "rows.parquet"))
    assert (len(set(map(str.lower, kept.columns))), kept.fetchall()) == (4, [(1, 2, 3, 4)])


def test_a_table_keeps_offsets(session: Session) -> None:
    """A zero at the end of `+00:00` was taken for one of a fraction."""
    query = "SELECT TIMESTAMPTZ '2024-01-01 00:00:00.5+00' AS v"
    assert b"2024-01-01 00:00:00.5+00:00\n" in written(session, query, "table")


@pytest.mark.parametrize("wrong", ["nope", "CAST('x' AS INT)"])
def test_an_error_names_the_query_as_it_was_asked(session: Session, wrong: str) -> None:
    with pytest.raises(QueryError, match=r"LINE 1: SELECT TIMETZ '12:00:00\+05' AS t, "):
        session.table(f"SELECT TIMETZ '12:00:00+05' AS t, {wrong}")


class _Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("named", ["v", "trace"])
def test_a_terminal_takes_every_value(
    session: Session, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """A time beyond the year 9999 ended the prompt; so did a list in a column called trace."""
    monkeypatch.setenv("COLUMNS", "60")
    wide = f", '{'w' * 40}' AS w, 'x' AS job"
    for value, expected in VALUES:
        for more in ("", f"{wide}, TIMESTAMP '2024-01-01 00:00:00' AS at"):
            out = _Terminal()
            write_rows(session.table(f"SELECT {value} AS {named}{more}"), "table", out)
            assert out.getvalue().endswith("(1 row)\n"), (value, expected)
