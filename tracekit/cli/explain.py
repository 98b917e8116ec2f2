"""`tracekit explain`: what happened to one Job or CronJob, and why, step by step."""

from __future__ import annotations

import sys

import click
from rich.console import Console
from rich.text import Text

from tracekit.api import Trace
from tracekit.cli.completion import complete_key, complete_trace, complete_version
from tracekit.cli.sql import tell_problems
from tracekit.cli.trace_options import namespace_option, parse_version
from tracekit.foreign import for_terminal
from tracekit.report.account import Account, Step, account_lines, clock
from tracekit.report.documents import write_document
from tracekit.report.replay import judgement_document

_DIVERGENT = ("different", "missing", "extra", "early", "late")


@click.command()
@click.argument("trace", metavar="TRACE", shell_complete=complete_trace)
@click.argument("key", metavar="NS/NAME", shell_complete=complete_key)
@namespace_option
@click.option("--at", metavar="TIME", help="Only what happened by then, like 2026-11-21T05:42:45Z.")
@click.option(
    "--kubernetes-version",
    metavar="V",
    help="Judge by the rules of this version, like v1.36.3.",
    shell_complete=complete_version,
)
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to print."
)
def explain(
    trace: str,
    key: str,
    namespace: str | None,
    at: str | None,
    kubernetes_version: str | None,
    output: str,
) -> None:
    """Tell what happened to one Job or CronJob, step by step.

    Its name alone will do where it is unique, and a pod's name stands for its Job; `job/NAME -n NS`
    works as well.

    For each sync of the controller that wrote something: what its cache had seen, what it did, by
    which rule with which numbers, and what it waited for afterwards (back-off, deadline,
    expectations). Writes of others come with the evidence for it. For a CronJob: every tick, and
    why a Job was started for it or not. With --at the account stops there, so that its end tells
    what was known and waited for at that time.
    """
    opened = Trace(trace)
    told = tell_problems(opened, set())
    account = opened.explain(
        key, namespace=namespace, at=at, version=parse_version(kubernetes_version)
    )
    if not told:  # a file that breaks only when it is read; others are named already
        tell_problems(opened, told)
    if output == "json":
        write_document(account_document(account), sys.stdout)
    elif sys.stdout.isatty():
        _render(account)
    else:
        for line in account_lines(account):
            click.echo(line)


def account_document(account: Account) -> dict[str, object]:
    """The account as JSON."""
    return {
        "schema_version": 1,
        "kind": account.kind,
        "namespace": account.namespace,
        "name": account.name,
        "steps": [
            {
                "time_ns": step.at_ns,
                "time": clock(step.at_ns).replace(" ", "T") + "Z",
                "resource_version": step.rv,
                "who": step.who,
                "what": step.what,
                "details": list(step.details),
                "verdict": step.verdict,
            }
            for step in account.steps
        ],
        "divergences": [judgement_document(judgement) for judgement in account.divergences],
        "opening": account.opening or None,
        "closing": account.closing or None,
    }


def _render(account: Account) -> None:
    console = Console(highlight=False)
    console.print(Text(for_terminal(f"{account.kind} {account.key}"), style="bold"))
    if account.opening:
        console.print(Text(for_terminal(account.opening), style="bold"))
    for step in account.steps:
        console.print()
        console.print(_headline(step))
        for detail in step.details:
            console.print(Text(for_terminal(f"    {detail}"), style="dim"), overflow="fold")
    if account.closing:
        console.print()
        console.print(Text(for_terminal(account.closing), style="bold"))


def _headline(step: Step) -> Text:
    style = "bold red" if step.verdict in _DIVERGENT else "green"
    rv = f"  rv {step.rv}" if step.rv is not None else ""
    verdict = f"  [{step.verdict}]" if step.verdict else ""
    return Text.assemble(
        (clock(step.at_ns), "cyan"), (rv, "dim"), "  ", for_terminal(f"{step.who} {step.what}"),
        (verdict, style),
    )  # fmt: skip
