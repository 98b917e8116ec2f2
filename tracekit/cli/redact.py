"""`tracekit redact`: a copy of a trace without what may be secret, or a look for what is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import orjson
from msgspec.structs import replace

from tracekit.base.errors import UsageError
from tracekit.base.escaping import for_terminal
from tracekit.cli.completion import complete_trace
from tracekit.cli.messages import say_line
from tracekit.cli.units import HERE_AS_PATH, NAMED_AS_PATH
from tracekit.record.redaction.redact import FIELDS, STRICT, Redactor, parse_fields, read_key
from tracekit.record.redaction.secrets import suspicions
from tracekit.report.table import counted
from tracekit.trace.format.header import header_document
from tracekit.trace.format.model import STATE_TYPES, Call, Origin, RowType
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.copying import BATCH_ROWS, call_of, gap_of, origin_of, rows_of
from tracekit.trace.writing.placing import check_absent, placed
from tracekit.trace.writing.writer import TraceWriter

_SHOWN_EXAMPLES = 3


@click.command("redact")
@click.argument("trace", metavar="TRACE", shell_complete=complete_trace)
@click.option("-o", "--output", type=HERE_AS_PATH, metavar="OUT", help="New trace.")
@click.option(
    "--fields", default=",".join(FIELDS), show_default=True, help="What to hash (comma-separated)."
)
@click.option(
    "--key-file",
    type=NAMED_AS_PATH,
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
    """Hash what may be secret in a trace; its verdicts stay.

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
    check_absent(output, "redacted copy")
    chosen = parse_fields(STRICT if strict else fields)
    redactor = Redactor(read_key(key_file), chosen)
    with placed(output, "redacting") as place:
        rows = redacted_copy(TraceReader(trace), place, redactor)
    say_line(f"Wrote {output}: {counted(rows, 'row')}, {', '.join(sorted(redactor.fields))} hashed")
    return 0


def redacted_copy(reader: TraceReader, output: Path, redactor: Redactor) -> int:
    """Write every row again, in its order, with its time."""
    header = replace(
        reader.header,
        sessions=tuple(redactor.header(session) for session in reader.header.sessions),
        streams={name: redactor.header(about) for name, about in reader.header.streams.items()},
        scope=redactor.header(reader.header.scope),
        controller_flags=tuple(map(redactor.text, reader.header.controller_flags)),
    )
    fields = sorted(redactor.fields)
    with TraceWriter(output, header, session={"source": "redact", "redacted": fields}) as writer:
        for row in rows_of(reader):
            _copy_row(row, writer, redactor)
        return writer.next_seq


def _copy_row(row: dict[str, Any], writer: TraceWriter, redactor: Redactor) -> None:
    kind, stream, recv_ns = row["type"], row["stream"], row["recv_ns"]
    if kind == RowType.GAP:
        gap = gap_of(row)
        writer.gap(replace(gap, reason=redactor.words(gap.reason)), recv_ns)
    elif kind == RowType.UNPARSED:
        # Nobody knows what is in it: its place is kept, its text is not.
        text = row["raw"] or (row["raw_bytes"] or b"").decode("utf-8", "replace")
        why = redactor.text(row["reason"] or "")
        writer.unparsed(redactor.hashed(text).encode(), recv_ns, why, stream=stream)
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
            origin=_origin(origin_of(row), redactor),
        )


def _origin(origin: Origin, redactor: Redactor) -> Origin:
    if not redactor.is_strict:
        return origin
    return replace(
        origin,
        actor=redactor.who(origin.actor),
        actor_agent=redactor.who(origin.actor_agent),
    )


def _call(row: dict[str, Any], redactor: Redactor) -> Call:
    call = call_of(row, orjson.dumps(redactor.call(orjson.loads(row["raw"]))))
    message = call.message
    if message is not None and "messages" in redactor.fields:
        message = redactor.hashed(message)
    return replace(call, origin=_origin(call.origin, redactor), message=message)


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
        for batch in table.to_batches(BATCH_ROWS):
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
