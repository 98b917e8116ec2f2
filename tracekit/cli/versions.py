"""`tracekit versions [V1 [V2]]`: what changed in which Kubernetes version.

Without a version: every change of the table. With one: all that this version decides. With two:
what differs between them.
"""

from __future__ import annotations

import sys
from typing import Any

import click
from msgspec.structs import asdict

from tracekit.base.errors import UsageError
from tracekit.cli.completion import complete_gates, complete_version
from tracekit.cli.trace_options import output_option, parse_feature_gates, tell_warnings
from tracekit.report.documents import write_document
from tracekit.report.table import write_table
from tracekit.versions import table as versions_table
from tracekit.versions.behavior_releases import SHIPPED
from tracekit.versions.behaviors import Behavior
from tracekit.versions.constants import Constants
from tracekit.versions.era import Era
from tracekit.versions.gates import GATES, Gate

SCHEMA_VERSION = 1


@click.command("versions")
@click.argument("version", required=False, metavar="[V1]", shell_complete=complete_version)
@click.argument("other", required=False, metavar="[V2]", shell_complete=complete_version)
@click.option(
    "--feature-gates",
    shell_complete=complete_gates,
    default="",
    metavar="A=true,…",
    help="Gates set on top of the defaults, in both versions.",
)
@output_option
def versions(version: str | None, other: str | None, feature_gates: str, output: str) -> None:
    """Show what changed in which Kubernetes version.

    Without a version: the whole table. With one: everything that it decides. With two: what
    differs between them.
    """
    overrides = parse_feature_gates(feature_gates)
    if version is None and overrides:
        raise UsageError("--feature-gates are set on top of a version's: name one, like v1.36.3")
    body: dict[str, Any]
    columns: dict[str, str]
    if version is None:
        body = {"changes": [asdict(change) for change in versions_table.all_changes()]}
        columns = dict.fromkeys(("version", "kind", "name", "change", "about"), "")
    elif other is None:
        era = _era(version, overrides)
        body = {"version": str(era.version), "rows": _era_rows(era)}
        columns = dict.fromkeys(("kind", "name", "value", "about"), "")
    else:
        left, right = _era(version, overrides), _era(other, overrides)
        found = versions_table.differences(left, right)
        body = {
            "left": str(left.version),
            "right": str(right.version),
            "differences": [asdict(difference) for difference in found],
        }
        columns = {"kind": "", "name": "", "left": str(left.version), "right": str(right.version)}
        columns["about"] = ""
    if output == "json":
        document = {"schema_version": SCHEMA_VERSION, **body}
        write_document(document, sys.stdout)
    else:
        _write_table(list(body.values())[-1], columns)


def _era(version: str, overrides: dict[str, bool]) -> Era:
    era = Era.resolve(version, overrides)
    tell_warnings(era)
    return era


def _era_rows(era: Era) -> list[dict[str, Any]]:
    rows = [
        {
            "kind": "gate",
            "name": gate.value,
            "value": versions_table.gate_state(era, gate),
            "about": GATES[gate].about,
        }
        for gate in Gate
    ]
    rows += [
        {
            "kind": "behavior",
            "name": behavior.name.lower(),
            "value": "yes" if behavior in era else "no",
            "about": f"{SHIPPED[behavior].about} ({SHIPPED[behavior].boundary.describe()})",
        }
        for behavior in Behavior
    ]
    rows += [
        {
            "kind": "constant",
            "name": name,
            "value": versions_table.format_value(name, getattr(era.constants, name)),
            "about": "",
        }
        for name in Constants.__struct_fields__
    ]
    return rows


def _write_table(rows: list[dict[str, Any]], columns: dict[str, str]) -> None:
    """Write the rows, what each is about below it where the terminal is narrow."""
    if not rows:
        click.echo("Nothing differs.")
        return
    headings = [title or column.upper() for column, title in columns.items()]
    names = list(columns)
    write_table(
        headings,
        [[str(row[column]) for column in names] for row in rows],
        sys.stdout,
        below=names.index("about"),
    )
