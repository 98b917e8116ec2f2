"""`tracekit diagnose`: what went wrong in a trace, worst first."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import orjson

from tracekit.answers.findings.baseline import baseline_document
from tracekit.answers.findings.diagnosis import RULES, Wanted, wanted_selector
from tracekit.answers.model import Finding, Severity
from tracekit.base.errors import UsageError
from tracekit.base.escaping import for_json
from tracekit.cli.baselines import baseline_option, read_baseline, tell_unused
from tracekit.cli.completion import complete_trace
from tracekit.cli.damage import tell_problems
from tracekit.cli.messages import say_line, waiting
from tracekit.cli.snapshot_input import as_one_trace, look_option
from tracekit.cli.targets import text_opened
from tracekit.cli.trace_options import (
    asked_rules,
    clock_option,
    namespace_option,
    parse_version,
    range_options,
    range_within,
    rules_options,
)
from tracekit.cli.units import HERE
from tracekit.report.ci import junit_of_findings, sarif_of_findings
from tracekit.report.documents import write_document
from tracekit.report.findings import document, markdown_lines, rule_lines, text_lines
from tracekit.sql.findings import findings_of
from tracekit.sql.session import Session

_WIDEST = 100
_NARROWEST = 60


def _list_rules(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    """`--list` needs no trace."""
    del param
    if value:
        for line in rule_lines(RULES, width=_width()):
            click.echo(line)
        ctx.exit()


@click.command()
@click.argument(
    "traces", metavar="TRACE|FILE…", nargs=-1, required=True, shell_complete=complete_trace
)
@look_option
@range_options
@namespace_option
@click.option("-l", "--selector", metavar="SEL", help="Only objects with these labels: app=shop.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning"]),
    help="Exit 1 on a finding so bad or worse.",
)
@baseline_option
@click.option(
    "--write-baseline", metavar="FILE", type=HERE, help="Accept all that is found: a file."
)
@rules_options
@clock_option
@click.option("-v", "--verbose", is_flag=True, help="Evidence and advice for every finding.")
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_rules,
    help="List every kind of finding, and how it is decided.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "markdown", "junit", "sarif"]),
    default="table",
    show_default=True,
    help="How to print.",
)
def diagnose(traces: tuple[str, ...], *, fail_on: str | None, output: str, **options: Any) -> int:
    """Say what went wrong in TRACE, worst first.

    TRACE may be a file of what `kubectl get` printed, or any other that `tracekit import` reads,
    and - is standard input: `kubectl get cronjobs,jobs,pods,events -A -o yaml | tracekit diagnose
    -`. Several files are read together, as of one cluster. What it says is as of the look; nothing
    is left on disk.

    Each finding has a stable id, says which objects it is about, in one sentence what happened,
    from what that is known and what to do, and names the upstream thread where there is one. TK1xx
    are divergences of a controller from its rules, TK2xx harm by controllers that kept to them,
    TK3xx CronJobs, TK4xx Jobs, TK9xx the record itself. docs/findings.md tells how each is decided.

    Times like -10m, and --since, count back from the end of the trace.
    """
    rules = asked_rules(options)
    place = as_one_trace(traces, version=parse_version(options["kubernetes_version"]))
    trace = " ".join(traces)
    session = Session([place], rules=rules)
    if len(session.sources) > 1:
        raise UsageError(f"{trace} names {len(session.sources)} traces: diagnose one at a time")
    printed = tell_problems(session, set())
    wanted = _wanted(session, options)
    baseline = read_baseline(options["baseline"]) if options["baseline"] is not None else None
    with waiting(f"Judging {trace}"):
        findings = findings_of(session, wanted, baseline)
    tell_problems(session, printed)
    if baseline is not None:
        tell_unused(baseline, options["baseline"])
    if options["write_baseline"] is not None:
        _write_baseline(findings, Path(options["write_baseline"]))
    _print(findings, session, trace, output, full=options["verbose"])
    if fail_on is None:
        return 0
    limit = Severity(fail_on).rank
    return 1 if any(finding.severity.rank <= limit for finding in findings) else 0


def _wanted(session: Session, options: dict[str, Any]) -> Wanted:
    if options["namespace"] is not None:
        session.objects.check_namespace(options["namespace"])
    times = range_within(session.end_ns, options["since"], options["from_text"], options["to_text"])
    return Wanted(options["namespace"], wanted_selector(options["selector"]), times)


def _write_baseline(findings: Sequence[Finding], target: Path) -> None:
    text = orjson.dumps(baseline_document(findings), option=orjson.OPT_INDENT_2).decode()
    with text_opened(target, force=True, instead="another with --write-baseline") as file:
        file.write(for_json(text) + "\n")
    say_line(f"Wrote {target}: it accepts what is found now")


def _width() -> int:
    columns = shutil.get_terminal_size((80, 24)).columns
    return max(_NARROWEST, min(columns, _WIDEST))


def _print(
    findings: Sequence[Finding], session: Session, trace: str, output: str, *, full: bool
) -> None:
    version = session.sources[0].header.kubernetes_version
    match output:
        case "json":
            write_document(document(findings, trace=trace, kubernetes_version=version), sys.stdout)
        case "markdown":
            for line in markdown_lines(findings, trace):
                click.echo(line)
        case "junit":
            click.echo(junit_of_findings(findings, trace), nl=False)
        case "sarif":
            write_document(sarif_of_findings(findings, trace), sys.stdout)
        case _:
            for line in text_lines(findings, width=_width(), full=full, trace=trace):
                click.echo(coloured(line))


#: How a finding's first line begins, and what its advice does.
_BEGINS = re.compile(r"(?P<severity>ERROR|WARNING|INFO) +TK\d+")
_COLOURS = {"ERROR": "red", "WARNING": "yellow", "INFO": "cyan"}


def coloured(line: str) -> str:
    """A line of the text with its severity in colour, which a pipe and NO_COLOR do without."""
    begins = _BEGINS.match(line)
    if begins is not None and not os.environ.get("NO_COLOR"):
        head = click.style(begins[0], fg=_COLOURS[begins["severity"]], bold=True)
        return head + line[begins.end() :]
    return line
