"""`tracekit sql`: ask a trace questions in SQL."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracekit.cli.completion import complete_example, complete_trace
from tracekit.cli.damage import note_damage
from tracekit.cli.talk import tell_all, tell_judging
from tracekit.cli.trace_options import parse_feature_gates, parse_version, rules_options
from tracekit.errors import UsageError
from tracekit.report.rows import FORMATS, write_rows
from tracekit.sql.catalog import examples
from tracekit.sql.session import Session
from tracekit.suggest import closest
from tracekit.trace.format.model import HEADER_NAME

if TYPE_CHECKING:
    from tracekit.api import Trace


@click.command()
@click.argument("words", nargs=-1, metavar='TRACE… ["QUERY"]', shell_complete=complete_trace)
@click.option(
    "-f", "--file", "script", metavar="FILE", help="Read the query from a file (-: stdin)."
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
@rules_options
def sql(
    words: tuple[str, ...],
    script: str | None,
    output: str,
    example: str | None,
    list_examples: bool,
    write: bool,
    kubernetes_version: str | None,
    process_zone: str | None,
    feature_gates: str | None,
) -> None:
    """Ask one or several traces questions in SQL.

    Each TRACE is the directory of a trace, its URL in object storage (s3://, gs://, abfs://,
    https://), or a pattern over either; with several, their rows are told apart by the column
    `trace`. Without a query a prompt opens. The views (jobs, attempts,
    actions, cron_ticks, verdicts, …) are described in docs/sql.md; `SHOW TABLES` lists them,
    `DESCRIBE jobs` lists the columns of one. Queries can read nothing but these traces and write
    nothing, unless --write is given.
    """
    if list_examples:
        _print_examples()
        return
    traces, query = split_words(words)
    if script is not None:
        query = _only_one(query, _script(script), "-f")
    if example is not None:
        query = _only_one(query, _example(example), "--example")
    session = Session(
        traces,
        write=write,
        kubernetes_version=parse_version(kubernetes_version),
        feature_gates=parse_feature_gates(feature_gates),
        process_zone=process_zone,
        before_judging=tell_judging,
    )
    told = tell_problems(session, set())
    if query is None:
        from tracekit.cli.sql_prompt import prompt  # noqa: PLC0415 - slow to import

        prompt(session, output)
        return
    rows = session.table(query)
    tell_problems(session, told)
    write_rows(rows, output, sys.stdout)


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


def _is_trace(word: str) -> bool:
    try:
        return (Path(word) / HEADER_NAME).exists()
    except (OSError, ValueError):  # a query need not be possible as a path: too long, say
        return False


def tell_problems(told_by: Session | Trace, told: set[str]) -> set[str]:
    """Say on stderr what is left out of the answers, and by which rules, each thing once.

    A trace that is damaged makes the exit status 2, whatever could be answered.
    """
    if told_by.is_damaged:
        note_damage()
    return tell_all([*told_by.problems, *told_by.warnings], told)


def _only_one(query: str | None, other: str, option: str) -> str:
    if query is not None:
        raise UsageError(f"the query is given twice: leave out {option} or the other one")
    return other


def _script(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
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
