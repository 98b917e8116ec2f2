"""Rows of a query as a table, records, CSV, JSON, JSON lines, Parquet or Markdown.

Whatever is in the trace is data: control characters are shown, not sent to the terminal, and bars
in Markdown cells are escaped. Times are written as RFC 3339 in UTC where a machine reads them.
"""

from __future__ import annotations

import base64
import csv
import json
import math
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from datetime import date, datetime, time, timedelta
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import NoneType
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

import pyarrow as pa
import pyarrow.compute as pc

from tracekit.base.errors import UsageError
from tracekit.base.escaping import for_csv, for_json, for_markdown, for_terminal
from tracekit.report.documents import write_document, write_lines
from tracekit.report.table import counted, terminal_width, write_facts, write_table

if TYPE_CHECKING:
    import duckdb

FORMATS = ("table", "line", "csv", "json", "jsonl", "parquet", "markdown")
#: A terminal shows that many rows of a table; a pipe and every other format get them all.
TERMINAL_ROWS = 500


def write_rows(rows: pa.Table, output: str, out: TextIO) -> None:
    """Write the rows in one of `FORMATS`."""
    if output == "parquet":
        _write_parquet(rows, out)
        return
    _WRITERS[output](rows, out)


def _write_parquet(rows: pa.Table, out: TextIO) -> None:
    if out.isatty():
        raise UsageError("Parquet is not for a terminal: send it to a file, like > result.parquet")
    import duckdb  # noqa: PLC0415 - its writer has every type of SQL, unions among them

    binary: IO[bytes] = out.buffer
    rows = rows.rename_columns(_apart(rows.column_names, str.lower))
    with TemporaryDirectory(prefix="tracekit-") as folder, duckdb.connect() as connection:
        path = Path(folder) / "rows.parquet"
        try:
            rows.validate(full=True)  # a decimal may have more digits than its type
            _check_least(rows)
            connection.from_arrow(rows).write_parquet(str(path), compression="zstd")
        except (duckdb.Error, pa.ArrowInvalid) as error:
            reason = str(error).splitlines()[0].rpartition(": ")[2]
            raise UsageError(
                f"Parquet cannot hold these values ({reason}): cast them to VARCHAR, or -o jsonl"
            ) from error
        with path.open("rb") as written:
            shutil.copyfileobj(written, binary)


def _check_least(rows: pa.Table) -> None:
    """Refuse the least HUGEINT, which Arrow's own check lets pass and no reader takes."""
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if pa.types.is_decimal128(column.type) and pc.min(column).as_py() == -(2**127):
            raise pa.ArrowInvalid(f"{name}: -2^127 has 39 digits")


#### For people ####


def _write_table(rows: pa.Table, out: TextIO) -> None:
    """DuckDB's box on a terminal, which cuts sentences anywhere; one line a row elsewhere."""
    shown = rows.slice(0, TERMINAL_ROWS) if out.isatty() else rows
    last = rows.num_columns - 1
    if rows.column_names[-1:] == ["comment"]:
        write_table(rows.column_names, _cells(shown), out, fold={last})
    elif out.isatty():
        _write_box(shown, out)
    else:
        write_table(rows.column_names, _cells(shown), out, right=_numbers(rows))
    count = counted(rows.num_rows, "row")
    if shown.num_rows < rows.num_rows:
        count += f", {shown.num_rows:,} of them shown: -o csv has all"
    out.write(f"({count})\n")


def _write_box(rows: pa.Table, out: TextIO) -> None:
    """As DuckDB's own shell shows them, of too many columns those that are looked for first."""
    import duckdb  # noqa: PLC0415 - only a terminal needs it

    width, day = terminal_width(out) or 0, None
    names = fitting_columns(rows, width)
    if len(names) < rows.num_columns and (day := _only_day(rows)) is not None:
        rows = _with_times(rows)
        names = fitting_columns(rows, width)
    with duckdb.connect() as connection:
        shown = rows.select(names)
        try:
            box = _box(connection.from_arrow(shown), out)
        except duckdb.Error:  # it computes the least HUGEINT and cannot write it
            box = _box(connection.from_arrow(_texts(shown)), out)
    lines = box.split("\n")  # and not at what else a value may hold that ends a line
    # The foot tells rows and columns; the rows are told for all formats alike.
    out.writelines(
        for_terminal(line) + "\n" for line in lines if line and not line.startswith("  ")
    )
    if len(names) < rows.num_columns:
        count = f"{len(names)} of {rows.num_columns} columns"
        rest = ": name others in the query, or" if day is None else f", times are of {day}:"
        out.write(f"{count}{rest} -o line shows all of them\n")
    elif "…" in box or "columns (" in box:
        out.write("Too wide for this terminal: -o line shows all of it\n")


def _moments(rows: pa.Table) -> list[str]:
    """The columns of times that have no zone, as the views have them."""
    kinds = ((field.name, field.type) for field in rows.schema)
    return [name for name, kind in kinds if pa.types.is_timestamp(kind) and kind.tz is None]


def _only_day(rows: pa.Table) -> date | str | None:
    """The day of all times of the rows, if it is one: then hours tell enough."""
    if len(set(rows.column_names)) < rows.num_columns:
        return None
    days: set[Any] = set()
    for name in _moments(rows):
        days.update(_all_values(pc.unique(rows[name].cast(pa.date32()))))
    days.discard(None)
    return days.pop() if len(days) == 1 else None


def _with_times(rows: pa.Table) -> pa.Table:
    """The rows with times of their day alone."""
    for name in _moments(rows):
        place = rows.column_names.index(name)
        rows = rows.set_column(place, name, rows[name].cast(pa.time64("us"), safe=False))
    return rows


#: What is looked for first where a terminal has not room for all columns; others in their order.
_FIRST = (
    "job", "cronjob", "pod", "object", "name", "outcome", "phase", "verdict", "reason", "due_at",
    "started_at", "seen_at", "from_at", "duration_s", "exit_code", "why",
)  # fmt: skip
#: What tells one apart from another that has the same name: of no use to who looks.
_IDENTITIES = re.compile(r"(.*_)?(uid|rv|seq|stream_pos)")
#: Of a fraction of a second, before an offset or the end.
_TRAILING_ZEROS = re.compile(r"(?<=\.)(\d*?)0+(?=[+-]|$)")
#: A longer value goes on below itself.
_WIDEST_CELL = 32
_BORDERS = 3


def fitting_columns(rows: pa.Table, width: int) -> list[str]:
    """Names of the columns to show in so many characters: all if they fit, else the first ones.

    Of those that do not all fit, columns without a value, identities, and the trace and the
    namespace where all rows have one, come last.
    """
    names = list(rows.column_names)
    widths = {name: _column_width(rows[name], name) for name in names}
    if sum(widths.values()) + 1 <= width or len(set(names)) < len(names):
        return names
    found: list[str] = []
    room = width - 1
    for name in sorted(names, key=lambda name: _rank(rows, name, names.index(name))):
        if widths[name] > room:
            if name in _FIRST:
                continue  # a narrower one that is looked for may have room
            break
        found.append(name)
        room -= widths[name]
    return found or names[:1]


def _rank(rows: pa.Table, name: str, place: int) -> tuple[int, int]:
    values = rows[name]
    if values.null_count == len(values) or _IDENTITIES.fullmatch(name):
        return 3, place
    if name in ("trace", "namespace"):
        return (3 if len({_text(value) for value in _all_values(values)}) == 1 else 1), place
    return (0, _FIRST.index(name)) if name in _FIRST else (2, place)


def _column_width(values: pa.ChunkedArray, name: str) -> int:
    """The characters that a column takes with its border: of heading, type or longest value."""
    longest = max((len(_text(value)) for value in _all_values(values)), default=0)
    return max(len(name), len(str(values.type)), min(longest, _WIDEST_CELL)) + _BORDERS


def _box(relation: duckdb.DuckDBPyRelation, out: TextIO) -> str:
    text = StringIO()
    with redirect_stdout(text):
        relation.show(max_width=terminal_width(out) or 0, max_rows=TERMINAL_ROWS, null_value="")
    return text.getvalue()


def _write_records(rows: pa.Table, out: TextIO) -> None:
    """Each row as a block, one value a line, nothing cut."""
    names = rows.column_names
    for number, cells in enumerate(_cells(rows)):
        if number:
            out.write("\n")
        write_facts(zip(names, cells, strict=True), out)


def write_listing(rows: pa.Table, out: TextIO) -> None:
    """Rows as all verbs but `sql` show them; columns without a value are left out.

    Of no rows nothing is written, as kubectl does.
    """
    if not rows.num_rows:
        return
    used = [name for name in rows.column_names if rows[name].null_count < rows.num_rows]
    rows = rows.select(used)
    write_table([name.upper() for name in used], _cells(rows), out, right=_numbers(rows))


def _texts(rows: pa.Table) -> pa.Table:
    columns = [pa.array([_text(value) for value in _all_values(column)]) for column in rows.columns]
    return pa.table(columns, names=rows.column_names)


def _cells(rows: pa.Table) -> Iterator[list[str]]:
    return ([_text(value) for value in row] for row in _values(rows))


def _numbers(rows: pa.Table) -> set[int]:
    return {place for place, field in enumerate(rows.schema) if _is_number(field.type)}


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _text(value: Any) -> str:  # noqa: PLR0911 - one return per type
    """A value for people: null is empty, lists and structs are JSON."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return _TRAILING_ZEROS.sub(r"\1", value.isoformat(sep=" "))
    if isinstance(value, float):
        return f"{value:.6g}" if value != int_or_none(value) else str(int(value))
    if isinstance(value, str):
        return value
    if isinstance(value, list | dict):
        return json.dumps(plain(value), ensure_ascii=False)
    return str(plain(value))


def int_or_none(value: float) -> int | None:
    """The integer that the number is, if it is one that can be written out."""
    return int(value) if math.isfinite(value) and value.is_integer() and abs(value) < 1e15 else None  # noqa: PLR2004


def _write_markdown(rows: pa.Table, out: TextIO) -> None:
    names = [for_markdown(name) for name in rows.column_names]
    out.write(f"| {' | '.join(names)} |\n")
    rule = ["---:" if _is_number(field.type) else "---" for field in rows.schema]
    out.write(f"| {' | '.join(rule)} |\n")
    out.writelines(
        f"| {' | '.join(for_markdown(_text(value)) for value in row)} |\n" for row in _values(rows)
    )


#### For machines ####


def _write_csv(rows: pa.Table, out: TextIO) -> None:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([for_csv(name) for name in rows.column_names])
    for row in _values(rows):
        writer.writerow([_csv(value) for value in row])


def _csv(value: Any) -> Any:
    value = plain(value)
    if isinstance(value, list | dict):
        value = for_json(json.dumps(value, ensure_ascii=False))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return for_csv(value)
    return "" if value is None else value


def _write_json(rows: pa.Table, out: TextIO) -> None:
    write_document(list(_documents(rows)), out)


def _write_lines(rows: pa.Table, out: TextIO) -> None:
    write_lines(_documents(rows), out)


def _documents(rows: pa.Table) -> Iterator[Mapping[str, Any]]:
    names = _apart(rows.column_names)
    for row in _values(rows):
        yield {name: plain(value) for name, value in zip(names, row, strict=True)}


def _apart(names: Sequence[str], key: Callable[[str], str] = str) -> list[str]:
    """The names of columns with no two alike: the second `job` is `job_1`, as DuckDB calls it."""
    taken = {key(name) for name in names}
    found: list[str] = []
    used: set[str] = set()
    for name in names:
        new, number = name, 0
        while key(new) in used or (number and key(new) in taken):
            number += 1
            new = f"{name}_{number}"
        used.add(key(new))
        found.append(new)
    return found


_AS_THEY_ARE = frozenset({str, bool, NoneType})


def plain(value: Any) -> Any:  # noqa: C901, PLR0911 - one return per type
    """The value as JSON has it."""
    if type(value) in _AS_THEY_ARE:
        return value
    if isinstance(value, datetime):
        return value.isoformat().removesuffix("+00:00") + "Z"
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)  # JSON has no such number
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {_key(key): plain(item) for key, item in value.items()}
    if isinstance(value, str | int):
        return value
    return str(value)


def _key(key: Any) -> str:
    """The key of a map as JSON has it, which is a text."""
    found = plain(key)
    return found if isinstance(found, str) else json.dumps(found)


def _values(rows: pa.Table) -> Iterator[tuple[Any, ...]]:
    for batch in rows.to_batches(max_chunksize=4096):
        yield from zip(*(_column_values(column) for column in batch.columns), strict=True)


def _all_values(column: pa.Array | pa.ChunkedArray) -> Iterator[Any]:
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else (column,):
        yield from _column_values(chunk)


def _column_values(column: pa.Array) -> list[Any]:
    """The values of a column: Python's, and where that has none such, texts."""
    if "time64" not in str(column.type):  # to which Python has no 24:00 and no nanoseconds
        with suppress(OverflowError, ValueError, TypeError):
            return cast("list[Any]", column.to_pylist(maps_as_pydicts="lossy"))
    return [_value(scalar) for scalar in column]


def _value(scalar: pa.Scalar) -> Any:  # noqa: PLR0911 - one return per type
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_time64(kind):
        return _clock(scalar.value, 10**9 if kind.unit == "ns" else 10**6)
    if pa.types.is_map(kind):
        pairs = [(_value(pair["key"]), _value(pair["value"])) for pair in scalar.values]
        named = {_key(key): value for key, value in pairs}
        return named if len(named) == len(pairs) else [list(pair) for pair in pairs]
    if pa.types.is_struct(kind):
        return {name: _value(scalar[place]) for place, name in enumerate(kind.names)}
    if isinstance(scalar, pa.ListScalar | pa.FixedSizeListScalar | pa.LargeListScalar):
        return [_value(item) for item in scalar.values]
    if pa.types.is_union(kind):
        return _value(scalar.value)
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        import duckdb  # noqa: PLC0415 - times beyond the year 9999 alone need it

        with duckdb.connect() as connection:
            relation = connection.from_arrow(pa.table({"value": pa.array([scalar])}))
            return relation.project("CAST(value AS VARCHAR)").fetchall()[0][0]


def _clock(count: int, per_s: int) -> str:
    """A time of day from its count of parts of a second, up to 24:00."""
    seconds, rest = divmod(count, per_s)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{clock}.{rest:0{len(str(per_s)) - 1}}".rstrip("0") if rest else clock


_WRITERS: Mapping[str, Callable[[pa.Table, TextIO], None]] = {
    "table": _write_table,
    "line": _write_records,
    "csv": _write_csv,
    "json": _write_json,
    "jsonl": _write_lines,
    "markdown": _write_markdown,
}

__all__ = ["FORMATS", "plain", "write_listing", "write_rows"]
