"""`tracekit sql`: ask a trace questions in SQL."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from tracekit.base.errors import UsageError
from tracekit.base.plain_files import NoPlainFileError, read_bounded
from tracekit.base.suggest import closest
from tracekit.base.time_input import TimeRange, time_range
from tracekit.cli.completion import complete_example, complete_trace
from tracekit.cli.damage import tell_problems
from tracekit.cli.executor_options import many_options
from tracekit.cli.messages import tell, tell_judging
from tracekit.cli.snapshot_input import as_trace, look_option
from tracekit.cli.trace_options import (
    absolute,
    asked_rules,
    clock_option,
    namespace_option,
    rules_options,
)
from tracekit.cli.units import DURATION, NAMED
from tracekit.report.rows import FORMATS, write_rows
from tracekit.report.table import counted
from tracekit.sql.bounds import Bounds
from tracekit.sql.catalog import examples
from tracekit.sql.computed import takes_only_verdicts
from tracekit.sql.scope import Chosen
from tracekit.sql.session import JudgedBy, Session
from tracekit.trace.format.model import HEADER_NAME

#: No query that somebody wrote comes near it.
_SCRIPT_BYTES_MAX = 16 << 20
#: No other view has the column `stream_pos`.
_WITH_POSITIONS = re.compile(r"observations|stream_pos|internal", re.IGNORECASE)


@click.command()
@click.argument("words", nargs=-1, metavar='TRACE… ["QUERY"]', shell_complete=complete_trace)
@click.option(
    "-f",
    "--file",
    "script",
    type=NAMED,
    metavar="FILE",
    help="Read the query from a file (-: stdin).",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(FORMATS),
    default="table",
    help="How to print the rows.",
)
@click.option(
    "--example",
    metavar="NAME",
    help="Run this one of the shipped queries.",
    shell_complete=complete_example,
)
@click.option("--examples", "list_examples", is_flag=True, help="Print the shipped queries.")
@click.option("--write", is_flag=True, help="Let queries read and write other files too.")
@look_option
@namespace_option
@click.option(
    "--from",
    "from_text",
    metavar="TIME",
    help="Only rows received from then on: 22:43, yesterday 14:00, -10m, or RFC 3339.",
)
@click.option(
    "--to", "to_text", metavar="TIME", help="Only rows received until then, written like --from."
)
@click.option(
    "--timeout",
    type=DURATION,
    metavar="2m",
    default="1h",
    show_default=True,
    help="End a query that takes longer.",
)
@rules_options
@clock_option
@many_options
def sql(
    words: tuple[str, ...],
    script: str | None,
    output: str,
    example: str | None,
    list_examples: bool,
    write: bool,
    namespace: str | None,
    processes: int | None,
    scheduler: str | None,
    parts: str | None,
    **options: Any,
) -> None:
    """Ask one or several traces questions in SQL.

    Each TRACE is the directory of a trace, its URL in object storage (s3://, gs://, abfs://,
    https://), or a pattern over either; with several, their rows are told apart by the column
    `trace`. Without a query a prompt opens. The views (jobs, attempts,
    actions, cron_ticks, verdicts, …) are described in docs/sql.md; `SHOW TABLES` lists them,
    `DESCRIBE jobs` lists the columns of one. Queries can read nothing but these traces and write
    nothing, unless --write is given.

    With -n the traces are seen as if nothing but this namespace had been recorded, and the leases
    of the controllers; with --from and --to as if the record had begun and ended then. Verdicts are
    those of the whole trace. What is not asked for is not read: of a pattern, traces of other times
    by their names. With --processes, --scheduler or --parts each trace is judged as a task, and
    with --parts each only once; a query that takes only verdicts opens no trace then.
    """
    if list_examples:
        _print_examples()
        return
    traces, query = split_words(words)
    if script is not None:
        query = _only_one(query, _script(script), "-f")
    if example is not None:
        query = _only_one(query, _example(example), "--example")
    typed = {as_trace(trace): trace for trace in traces}
    traces = list(typed)
    within = _within(traces, options["from_text"], options["to_text"])
    by_executor = any(option is not None for option in (processes, scheduler, parts))
    with_rows = not by_executor or query is None or not takes_only_verdicts(query)
    session = Session(
        traces,
        write=write,
        rules=asked_rules(options),
        before_judging=tell_judging,
        chosen=Chosen(namespace, positions=_may_show_positions(query), traces=within, rows=within),
        judged_by=_executor(processes, scheduler, parts) if by_executor else None,
        with_rows=with_rows,
    )
    session.bounded = Bounds(session.connection, options["timeout"]).kept
    for source in session.sources:
        source.typed = typed.get(source.word, "")
    printed = tell_problems(session, set())
    if with_rows:
        check_namespace(session, traces, namespace)
    tell_left_out(session)
    if query is None:
        from tracekit.cli.sql_prompt import prompt  # noqa: PLC0415 - slow to import

        prompt(session, output)
        return
    rows = session.table(query)
    tell_problems(session, printed)
    write_rows(rows, output, sys.stdout)


def _within(traces: Sequence[str], from_text: str | None, to_text: str | None) -> TimeRange:
    """The time that is asked for; one that counts from the end of the traces takes a look there."""
    within = absolute({"from_text": from_text, "to_text": to_text})
    if within is not None:
        return within
    with closing(Session(traces)) as session:
        return time_range(session.end_ns, from_=from_text, to=to_text)


def split_words(words: Sequence[str]) -> tuple[list[str], str | None]:
    """Which words name traces, and the query if the last one is it."""
    if not words:
        raise UsageError("name a trace, like: tracekit sql TRACE 'SELECT * FROM jobs'")
    last = words[-1]
    one_word = bool(last.strip(" \t\n;")) and not any(c.isspace() for c in last.strip())
    if one_word or (last and _is_trace(last)):
        return list(words), None
    if len(words) == 1:
        raise UsageError(
            "name the trace before the query, like: tracekit sql TRACE 'SELECT * FROM jobs'"
        )
    return list(words[:-1]), last


def _executor(processes: int | None, scheduler: str | None, parts: str | None) -> JudgedBy:
    from tracekit.cli.sql_many import JudgedByExecutor  # noqa: PLC0415 - the engine is slow to import

    return JudgedByExecutor(processes, scheduler, parts)


def _may_show_positions(query: str | None) -> bool:
    """Whether a query may ask where rows stand in their streams."""
    return query is None or _WITH_POSITIONS.search(query) is not None


def _is_trace(word: str) -> bool:
    try:
        return (Path(word) / HEADER_NAME).exists()
    except (OSError, ValueError):  # a query need not be possible as a path: too long, say
        return False


def tell_left_out(session: Session) -> None:
    """Say how many traces were not read."""
    if session.left_out:
        tell(f"{counted(session.left_out, 'trace')} without what is asked about: not read")


def check_namespace(session: Session, traces: Sequence[str], namespace: str | None) -> None:
    """Raise a UsageError if the traces have no Job or CronJob in the namespace.

    What is damaged may have had some, and that was told.
    """
    if namespace is None or session.is_damaged:
        return
    if namespace not in session.objects.namespaces:
        Session(traces).objects.check_namespace(namespace)


def _only_one(query: str | None, other: str, option: str) -> str:
    if query is not None:
        raise UsageError(f"the query is given twice: leave out {option} or the other one")
    return other


def _script(name: str) -> str:
    try:
        if name == "-":
            return sys.stdin.read()
        return read_bounded(name, bytes_max=_SCRIPT_BYTES_MAX).decode()
    except NoPlainFileError as error:
        raise UsageError(f"{name} {error}: name a file with a query with -f") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is no text: name a file with a query with -f") from error
    except OSError as error:
        raise UsageError(
            f"{name} cannot be read ({error.strerror}): name a file with a query with -f"
        ) from error


def _example(name: str) -> str:
    known = {example.name: example.sql for example in examples()}
    if name not in known:
        close = closest(name, known)
        hint = f"did you mean {close}?" if close else "`tracekit sql --examples` lists them"
        raise UsageError(f"there is no example {name!r}; {hint}")
    return known[name]


def _print_examples() -> None:
    for example in examples():
        click.echo(f"-- {example.name}: {example.question}\n{example.sql};\n")
