"""`tracekit redact`: a copy of a trace without what may be secret, or a look for what is left."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import orjson

from tracekit.errors import UsageError
from tracekit.record.redact import FIELDS, Redactor, parse_fields, read_key, suspicions
from tracekit.trace.model import STATE_TYPES, Gap, RowType
from tracekit.trace.reader import TraceReader
from tracekit.trace.writer import TraceWriter

_BATCH_ROWS = 1024
_COLUMNS = (
    *("seq", "stream", "type", "recv_ns", "synthesized", "raw", "raw_bytes", "reason"),
    *("gap_last_rv", "gap_next_rv", "gap_from_ns", "gap_until_ns", "gap_reason"),
)
_SHOWN_EXAMPLES = 3


@click.command("redact")
@click.argument("trace", metavar="TRACE")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="OUT", help="New trace.")
@click.option(
    "--fields", default=",".join(FIELDS), show_default=True, help="What to hash (comma-separated)."
)
@click.option(
    "--key-file",
    type=click.Path(path_type=Path),
    help="Key of the hashes, to get equal ones in other traces; random without it.",
)
@click.option("--check", is_flag=True, help="Only list what still looks like a secret.")
def redact(
    *, trace: str, output: Path | None, fields: str, key_file: Path | None, check: bool
) -> int:
    """Hash environment values, commands and arguments, and annotations of a trace.

    Equal values get equal hashes, so replay and joins work as before. With --check nothing is
    written; the exit status is 1 if something looks like a secret.
    """
    if check:
        if output is not None:
            raise UsageError("--check writes nothing; leave -o away.")
        return _check(TraceReader(trace))
    if output is None:
        raise UsageError("Name the redacted copy with -o, or use --check.")
    if output.exists():
        raise UsageError(f"{output} exists; choose another name for the redacted copy.")
    redactor = Redactor(read_key(key_file), parse_fields(fields))
    rows = _copy(TraceReader(trace), output, redactor)
    click.echo(
        f"Wrote {output}: {rows:,} rows, {', '.join(sorted(redactor.fields))} hashed", err=True
    )
    return 0


def _copy(reader: TraceReader, output: Path, redactor: Redactor) -> int:
    """Write every row again, in its order, with its time."""
    sessions = tuple(dict(session) for session in reader.header.sessions)
    header = replace(reader.header, sessions=sessions)
    fields = sorted(redactor.fields)
    with TraceWriter(output, header, session={"source": "redact", "redacted": fields}) as writer:
        for batch in reader.table(_COLUMNS).to_batches(_BATCH_ROWS):
            for row in batch.to_pylist():
                _copy_row(row, writer, redactor)
        return writer.next_seq


def _copy_row(row: dict[str, Any], writer: TraceWriter, redactor: Redactor) -> None:
    kind, stream, recv_ns = row["type"], row["stream"], row["recv_ns"]
    if kind == RowType.GAP:
        gap = Gap(
            stream=stream,
            reason=row["gap_reason"],
            last_rv=row["gap_last_rv"],
            next_rv=row["gap_next_rv"],
            from_ns=row["gap_from_ns"],
            until_ns=row["gap_until_ns"],
        )
        writer.gap(gap, recv_ns)
    elif kind == RowType.UNPARSED:
        # Nobody knows what is in it: its place is kept, its text is not.
        text = row["raw"] or (row["raw_bytes"] or b"").decode("utf-8", "replace")
        writer.unparsed(redactor.hashed(text).encode(), recv_ns, row["reason"], stream=stream)
    else:
        raw: Any = row["raw"].encode()
        parsed = orjson.loads(raw)
        if kind in STATE_TYPES and isinstance(parsed, dict):
            parsed = redactor(stream or "", parsed)
            raw = orjson.dumps(parsed)
        writer.append(stream, kind, recv_ns, raw, parsed=parsed, synthesized=row["synthesized"])


def _check(reader: TraceReader) -> int:
    """List suspicious places by kind of object and path, with a few names each."""
    found: Counter[tuple[str, str, str]] = Counter()
    examples: dict[tuple[str, str, str], list[str]] = {}
    columns = ("stream", "type", "namespace", "name", "raw")
    for table in reader.batches(columns, types=sorted(STATE_TYPES)):
        for batch in table.to_batches(_BATCH_ROWS):
            for row in batch.to_pylist():
                for path, why in suspicions(orjson.loads(row["raw"])):
                    key = (row["stream"] or "", path, why)
                    found[key] += 1
                    names = examples.setdefault(key, [])
                    name = f"{row['namespace'] or '-'}/{row['name']}"
                    if name not in names and len(names) < _SHOWN_EXAMPLES:
                        names.append(name)
    for key in sorted(found):
        stream, path, why = key
        shown = ", ".join(examples[key])
        click.echo(f"{stream} {path}: {why} ({found[key]} times, for example {shown})")
    if not found:
        click.echo("Nothing looks like a secret.", err=True)
    return 1 if found else 0
