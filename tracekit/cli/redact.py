"""`tracekit redact`: a copy of a trace without what may be secret, or a look for what is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import orjson

from tracekit.cli.completion import complete_trace
from tracekit.errors import UsageError
from tracekit.foreign import for_terminal
from tracekit.record.redaction.redact import FIELDS, STRICT, Redactor, parse_fields, read_key
from tracekit.record.redaction.secrets import suspicions
from tracekit.report.table import counted
from tracekit.trace.format.header import header_document
from tracekit.trace.format.model import STATE_TYPES, Call, Gap, Origin, RowType
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.writer import TraceWriter

_BATCH_ROWS = 1024
_ORIGIN = tuple(Origin.__slots__)
_COLUMNS = (
    *("seq", "stream", "type", "recv_ns", "synthesized", "raw", "raw_bytes", "reason", "message"),
    *("gap_last_rv", "gap_next_rv", "gap_from_ns", "gap_until_ns", "gap_reason"),
    *("namespace", "name", "uid", "job", "cronjob", "code", *_ORIGIN),
)
_CALL = ("namespace", "name", "uid", "job", "cronjob", "code", "reason")
_SHOWN_EXAMPLES = 3


@click.command("redact")
@click.argument("trace", metavar="TRACE", shell_complete=complete_trace)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="OUT", help="New trace.")
@click.option(
    "--fields", default=",".join(FIELDS), show_default=True, help="What to hash (comma-separated)."
)
@click.option(
    "--key-file",
    type=click.Path(path_type=Path),
    help="Key of the hashes, to get equal ones in other traces; random without it.",
)
@click.option("--strict", is_flag=True, help="Keep nothing but what a replay needs.")
@click.option("--check", is_flag=True, help="Only list what still looks like a secret.")
def redact(
    *,
    trace: str,
    output: Path | None,
    fields: str,
    key_file: Path | None,
    strict: bool,
    check: bool,
) -> int:
    """Hash what may be secret: environment, arguments, annotations, volumes, messages.

    Equal values get equal hashes, so replay and joins work as before. What looks like a secret (a
    token, a key, a password in a URL) is hashed wherever it stands. With --check nothing is
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
    chosen = parse_fields(STRICT if strict else fields)
    redactor = Redactor(read_key(key_file), chosen)
    rows = redacted_copy(TraceReader(trace), output, redactor)
    click.echo(
        f"Wrote {output}: {counted(rows, 'row')}, {', '.join(sorted(redactor.fields))} hashed",
        err=True,
    )
    return 0


def redacted_copy(reader: TraceReader, output: Path, redactor: Redactor) -> int:
    """Write every row again, in its order, with its time."""
    header = replace(
        reader.header,
        sessions=tuple(redactor.header(session) for session in reader.header.sessions),
        streams={name: redactor.header(about) for name, about in reader.header.streams.items()},
    )
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
            reason=redactor.words(row["gap_reason"]),
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
    elif kind == RowType.CALL:
        writer.call(_call(row, redactor))
    else:
        parsed: Any = redactor.row(stream or "", kind, orjson.loads(row["raw"]))
        writer.append(
            stream,
            kind,
            recv_ns,
            orjson.dumps(parsed),
            parsed=parsed,
            synthesized=row["synthesized"],
            origin=_origin(row, redactor),
        )


def _origin(row: dict[str, Any], redactor: Redactor) -> Origin | None:
    found = {name: row[name] for name in _ORIGIN}
    if redactor.is_strict:
        for name in ("actor", "actor_agent"):
            found[name] = redactor.who(found[name])
    return Origin(**found) if any(value is not None for value in found.values()) else None


def _call(row: dict[str, Any], redactor: Redactor) -> Call:
    message = row["message"]
    if message is not None and "messages" in redactor.fields:
        message = redactor.hashed(message)
    return Call(
        stream=row["stream"],
        recv_ns=row["recv_ns"],
        raw=orjson.dumps(redactor.call(orjson.loads(row["raw"]))),
        origin=_origin(row, redactor) or Origin(),
        message=message,
        **{name: row[name] for name in _CALL},
    )


#### Looking for what is left ####


def _check(reader: TraceReader) -> int:
    """List suspicious places by kind of object and path, with a few names each."""
    found: Counter[tuple[str, str, str]] = Counter()
    examples: dict[tuple[str, str, str], list[str]] = {}
    for stream, name, body in _bodies(reader):
        for path, why in suspicions(body):
            key = (stream, path, why)
            found[key] += 1
            names = examples.setdefault(key, [])
            if name not in names and len(names) < _SHOWN_EXAMPLES:
                names.append(name)
    for key in sorted(found):
        stream, path, why = key
        shown = ", ".join(examples[key])
        line = f"{stream} {path}: {why} ({found[key]} times, for example {shown})"
        click.echo(for_terminal(line))
    if not found:
        click.echo("Nothing looks like a secret.", err=True)
    return 1 if found else 0


def _bodies(reader: TraceReader) -> Iterator[tuple[str, str, Any]]:
    """Yield (stream, name, contents) of everything in a trace: the header and every row."""
    yield "trace.json", "trace.json", header_document(reader.header)
    columns = ("stream", "type", "namespace", "name", "raw", "raw_bytes", "gap_reason", "actor")
    for table in reader.batches(columns):
        for batch in table.to_batches(_BATCH_ROWS):
            for row in batch.to_pylist():
                stream = row["stream"] or "-"
                if row["type"] in STATE_TYPES:
                    name = f"{row['namespace'] or '-'}/{row['name']}"
                else:
                    name = f"a {row['type']} row"
                yield stream, name, _contents(row)


def _contents(row: dict[str, Any]) -> Any:
    if row["type"] == RowType.GAP:
        return {"reason": row["gap_reason"]}
    text = row["raw"] or (row["raw_bytes"] or b"").decode("utf-8", "replace")
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
