"""`tracekit jobs`: the Jobs of a trace, one line each."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click
import pyarrow as pa
import pyarrow.compute as pc

from tracekit.answers.findings.diagnosis import wanted_selector
from tracekit.base.errors import UsageError
from tracekit.base.kube.selectors import selector_matches
from tracekit.base.suggest import hint
from tracekit.base.time_input import ALWAYS, TimeRange
from tracekit.cli.completion import complete_cronjob, complete_job_column, complete_trace
from tracekit.cli.damage import tell_problems
from tracekit.cli.messages import tell
from tracekit.cli.snapshot_input import as_trace, look_option
from tracekit.cli.sql import check_namespace, tell_left_out
from tracekit.cli.trace_options import absolute, namespace_option, range_options, range_within
from tracekit.report.rows import FORMATS, write_listing, write_rows
from tracekit.sql.catalog import job_columns
from tracekit.sql.scope import Chosen
from tracekit.sql.session import Session
from tracekit.trace.format.model import STATELESS

#: What `table` shows fits 80 columns; what each heading is made from. Every Job that completed has
#: the same reason, and of a trace of one day the hours are enough.
_SHORT = {
    "job": "namespace || '/' || job",
    "outcome": "concat_ws(' ', outcome, CASE WHEN outcome = 'Failed' THEN reason END)",
    "created": (
        "CASE WHEN min(created_at::DATE) OVER () = max(created_at::DATE) OVER () "
        "THEN strftime(created_at, '%H:%M:%S') ELSE strftime(created_at, '%m-%d %H:%M:%S') END"
    ),
    "duration": "duration",
    "pods": "pods",
    "failed": "pods_failed",
}
_WIDE = (
    "namespace", "job", "cronjob", "outcome", "reason", "created_at", "duration_s", "pods",
    "pods_failed", "retries", "queue_s", "run_s", "backoff_s", "succeeded", "failed", "restarts",
    "message",
)  # fmt: skip
#: Where somebody finds the columns.
#: The columns that hold what kubectl's --sort-by names by its path in a Job.
_OF_PATHS = {
    "metadata.namespace": "namespace",
    "metadata.name": "job",
    "metadata.uid": "job_uid",
    "metadata.creationtimestamp": "created_at",
    "status.starttime": "started_at",
    "status.completiontime": "finished_at",
    "status.active": "active",
    "status.succeeded": "succeeded",
    "status.failed": "failed",
    "spec.parallelism": "parallelism",
    "spec.completions": "completions",
    "spec.backofflimit": "backoff_limit",
}
_COLUMNS = '`tracekit sql TRACE "DESCRIBE jobs"` lists them, with what each means'
OUTCOMES = ("Complete", "Failed", "Running", "Pending", "Suspended", "Deleted")


@click.command()
@click.argument("traces", nargs=-1, required=True, metavar="TRACE…", shell_complete=complete_trace)
@look_option
@namespace_option
@click.option(
    "-A", "--all-namespaces", "everywhere", is_flag=True, help="All namespaces, as without -n."
)
@click.option("-l", "--selector", metavar="SEL", help="Only Jobs with these labels: app=shop.")
@click.option(
    "--sort-by",
    metavar="COLUMN",
    help="A column of the view `jobs`, like duration_s, or what kubectl takes, like "
    ".status.startTime; -duration_s begins with the greatest.  "
    "[default: created_at]",
    shell_complete=complete_job_column,
)
@click.option(
    "--outcome",
    multiple=True,
    type=click.Choice(OUTCOMES, case_sensitive=False),
    help="Only Jobs that ended (or stood at the end) like this; may be given several times.",
)
@click.option(
    "--cronjob", metavar="NAME", help="Only Jobs of this CronJob.", shell_complete=complete_cronjob
)
@range_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "wide", *FORMATS[1:]]),
    default="table",
    help="How to print; all but table and wide have every column.",
)
def jobs(
    traces: tuple[str, ...],
    namespace: str | None,
    output: str,
    **options: Any,
) -> None:
    """List the Jobs of a trace: outcome, reason, pods, retries.

    The columns are those of the view `jobs` in docs/sql.md; Jobs come in order of creation. With
    --since, --from or --to they are the Jobs that lived then. Of several traces those without the
    namespace, and those that a recorder rotated at other times, are not read; nor is what of a
    bucket's traces is of other namespaces.
    """
    times = {name: options[name] for name in ("since", "from_text", "to_text")}
    if options["everywhere"] and namespace is not None:
        raise UsageError("-A and -n both say which namespaces: leave one out")
    selector = wanted_selector(options["selector"])
    order = _order(options["sort_by"])
    chosen = Chosen(namespace, with_common=False, positions=False, traces=absolute(times) or ALWAYS)
    traces = tuple(as_trace(trace) for trace in traces)
    session = Session(traces, chosen=chosen)
    tell_problems(session, set())
    check_namespace(session, traces, namespace)
    tell_left_out(session)
    cronjob = options["cronjob"]
    if cronjob is not None:
        session.objects.check_cronjob(cronjob, namespace)
    rows = session.own_table(
        "SELECT namespace AS _namespace, cronjob AS _cronjob, outcome AS _outcome, "  # noqa: S608
        f"labels AS _labels, {_columns(output, len(session.sources))} FROM jobs "
        f"WHERE {_lived(range_within(session.end_ns, **times))} ORDER BY {order}"
    )
    rows = _matching(rows, _namespace=namespace, _outcome=options["outcome"], _cronjob=cronjob)
    if selector is not None:
        labels = [dict(found or ()) for found in rows["_labels"].to_pylist()]
        fits = [selector_matches(selector, found) for found in labels]
        rows = rows.filter(pa.array(fits, pa.bool_()))
    if not rows.num_rows and not session.is_damaged:
        tell("no Job found" + _why_none(session))
    if output == "table" and not session.rows("SELECT 1 FROM coverage WHERE stream = 'pods'"):
        rows = rows.drop_columns([name for name in ("pods", "failed") if name in rows.column_names])
    rows = rows.drop_columns(["_namespace", "_cronjob", "_outcome", "_labels"])
    if output in ("table", "wide"):
        write_listing(rows, sys.stdout)
    else:
        write_rows(rows, output, sys.stdout)


def _matching(rows: pa.Table, **wanted: str | Sequence[str] | None) -> pa.Table:
    """The rows whose columns have the wanted value, or one of them; None and () ask nothing."""
    for name, value in wanted.items():
        if value not in (None, ()):
            values = [value] if isinstance(value, str) else value
            known = pa.array([one.lower() for one in values], pa.string())
            rows = rows.filter(pc.is_in(pc.utf8_lower(rows[name]), known))
    return rows


def _why_none(session: Session) -> str:
    """Why traces have no Jobs that nonetheless tell of some."""
    whys = [source.header.scope.get(STATELESS) for source in session.sources]
    if whys and all(whys):
        return f": {whys[0]}; `tracekit diagnose` says what it tells"
    if session.rows("SELECT 1 FROM coverage WHERE stream = 'jobs'"):
        return ""
    return ": none were recorded; `tracekit timeline` shows what was"


def _order(asked: str | None) -> str:
    """What Jobs are sorted by, as SQL; a UsageError for what is no column."""
    usual = "created_at, namespace, job"
    if asked is None:
        return usual
    falls = asked.startswith("-")
    name = asked.lstrip("-").strip("{}").removeprefix(".").lower()
    name = _OF_PATHS.get(name, name)
    columns = job_columns()
    if name not in columns:
        raise UsageError(f"there is no column {asked!r}{hint(name, columns, _COLUMNS)}")
    return f"{name} {'DESC' if falls else 'ASC'} NULLS LAST, {usual}"


def _lived(times: TimeRange) -> str:
    """The condition that a Job was there at some time of the range."""
    terms = ["true"]
    if times.from_ns is not None:
        gone = "coalesce(finished_at, gone_at)"
        terms.append(f"({gone} IS NULL OR epoch_ns({gone}) >= {times.from_ns})")
    if times.until_ns is not None:
        terms.append(f"coalesce(epoch_ns(created_at), 0) <= {times.until_ns}")
    return " AND ".join(terms)


def _columns(output: str, traces: int) -> str:
    if output not in ("table", "wide"):
        return "*"
    short = ", ".join(f"{source} AS {name}" for name, source in _SHORT.items())
    chosen = short if output == "table" else ", ".join(_WIDE)
    return f"trace, {chosen}" if traces > 1 else chosen
