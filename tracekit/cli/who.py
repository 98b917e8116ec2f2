"""`tracekit who`: what a user or controller changed, field by field."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click

from tracekit.base.errors import UsageError
from tracekit.base.suggest import hint
from tracekit.cli.completion import complete_actor, complete_key, complete_trace
from tracekit.cli.damage import tell_problems
from tracekit.cli.messages import tell
from tracekit.cli.one_trace import first_of, session_of_one
from tracekit.cli.snapshot_input import look_option
from tracekit.cli.trace_options import (
    limit_option,
    namespace_option,
    output_option,
    range_options,
    range_within,
)
from tracekit.report.documents import write_document
from tracekit.report.edits import actor_rows, edit_document, write_actors, write_edits
from tracekit.report.table import counted
from tracekit.sql.edits import Edit, edits_of, matching, named_object
from tracekit.trace.format.model import STATELESS

_NAMED = "SELECT 1 FROM internal._rows WHERE actor IS NOT NULL LIMIT 1"


@click.command()
@click.argument("trace", metavar="TRACE", shell_complete=complete_trace)
@click.argument("name", metavar="[NAME]", required=False, shell_complete=complete_actor)
@click.option(
    "--object",
    "key",
    metavar="NS/NAME",
    help="Only writes to this object, whoever made them; cronjob/NAME and the like work, too.",
    shell_complete=complete_key,
)
@look_option
@namespace_option
@range_options
@limit_option
@output_option
def who(
    trace: str,
    name: str | None,
    *,
    key: str | None,
    namespace: str | None,
    limit: int,
    output: str,
    **times: Any,
) -> None:
    """Say who changed what: users, controllers and other clients.

    NAME is a user of the audit log, a controller (job-controller) or a field manager
    (kubectl-edit). Each write comes with its fields, old and new, and with what the actor is known
    from: the audit log, an Event or a condition, or the object's managedFields. Requests that were
    refused are there, too, where there is an audit log. Without NAME and --object everybody who
    wrote is listed.

    What managedFields tell of the time before an object was first seen is `set`: who, when, and the
    values that these fields have now.
    """
    session, printed = session_of_one(trace)
    if namespace is not None:
        session.objects.check_namespace(namespace)
    why = session.sources[0].header.scope.get(STATELESS)
    if why is not None and not session.rows(_NAMED):
        tell(f"nobody's writes are known: {why}; `tracekit timeline` tells what was shown")
    within = range_within(lambda: session.end_ns, **times)
    space, own, stream = (
        (namespace, None, None) if key is None else named_object(session, key, namespace)
    )
    found = edits_of(session, namespace=space, name=own, stream=stream)
    edits = (edit for edit in found if not within or within.holds(edit.at_ns or 0))
    if name is None and key is None:
        _write_actors(actor_rows(edits), trace, output, limit)
    else:
        _write_edits(_by(name, edits), trace, output, limit)
    tell_problems(session, printed)


def _by(name: str | None, edits: Iterator[Edit]) -> Iterator[Edit]:
    """Those of one actor; a UsageError that names who there is if nothing is of that one."""
    if name is None:
        yield from edits
        return
    others: dict[str, None] = {}
    found = False
    for edit in edits:
        if matching(name, edit):
            found = True
            yield edit
        else:
            others.update(dict.fromkeys(edit.names))
    if not found:
        meant = hint(name, others, "`tracekit who TRACE` lists who did")
        raise UsageError(f"nobody called {name!r} wrote any of this{meant}")


def _write_actors(rows: list[dict[str, Any]], trace: str, output: str, limit: int) -> None:
    left_out = len(rows[limit:])
    if output == "json":
        document = {"schema_version": 1, "trace": trace, "actors": rows[:limit]}
        write_document({**document, "left_out": left_out}, sys.stdout)
    else:
        write_actors(rows[:limit], sys.stdout)
    if left_out:
        tell(f"{counted(left_out, 'other')} left out: say --limit {len(rows)}")


def _write_edits(edits: Iterator[Edit], trace: str, output: str, limit: int) -> None:
    first, count = first_of(
        edits, limit, lambda edit: (edit.at_ns or 0, edit.resource_version or 0)
    )
    left_out = count - len(first)
    if output == "json":
        document = {
            "schema_version": 1,
            "trace": trace,
            "writes": [edit_document(edit) for edit in first],
            "left_out": left_out,
        }
        write_document(document, sys.stdout)
    else:
        write_edits(first, sys.stdout)
    if not count:
        tell("the record tells of no write to it then")
    if left_out:
        tell(f"{counted(left_out, 'later write')} left out: say --from, or --limit {count}")
