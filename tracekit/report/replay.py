"""The results of a replay as a table, as JSON or as JSON lines.

The JSON documents are a contract: see docs/json.md. Their keys are added to, never changed, within
one `schema_version`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TextIO

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tracekit.diff.trace import DiffReport
from tracekit.eras.era import Era
from tracekit.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.verdict import Judgement, Verdict

SCHEMA_VERSION = 1
_STYLES = {
    Verdict.MATCH: "green",
    Verdict.MATCH_LAGGED: "green",
    Verdict.FOREIGN: "cyan",
    Verdict.UNKNOWABLE: "yellow",
}


def diff_document(report: DiffReport, era: Era) -> dict[str, Any]:
    """The document of `replay --diff -o json`."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kubernetes_version": str(era.version),
        "warnings": list(era.warnings),
        "observations": report.observations,
        "summary": report.summary(),
        "divergences": [judgement_document(j) for j in report.divergences],
    }


def judgement_document(judgement: Judgement) -> dict[str, Any]:
    """One judgement as the JSON documents have it."""
    where = judgement.object
    return {
        "controller": judgement.controller,
        "object": {
            "kind": where.kind,
            "namespace": where.namespace,
            "name": where.name,
            "uid": where.uid,
        },
        "action": judgement.action,
        "verdict": judgement.verdict.value,
        "time": format_rfc3339(judgement.time_ns),
        "resource_version": judgement.resource_version,
        "subject": judgement.subject,
        "why": judgement.why,
        "fields": [
            {"path": field.path, "expected": field.expected, "observed": field.observed}
            for field in judgement.fields
        ],
        "reason": judgement.reason.value if judgement.reason is not None else None,
        "forced": judgement.forced,
        "ambiguous": judgement.ambiguous,
        "silent_syncs": judgement.silent_syncs,
        "assumptions": [
            {
                "kind": assumption.kind,
                "from": format_rfc3339(assumption.from_ns),
                "until": format_rfc3339(assumption.until_ns),
                "evidence": assumption.evidence,
            }
            for assumption in judgement.assumptions
        ],
    }


def action_document(judgement: Judgement) -> dict[str, Any]:
    """One action of the port as `replay -o json` has it."""
    document = judgement_document(judgement)
    document["lag"] = {
        "observations": judgement.lag_observations,
        "seconds": judgement.lag_ns / NS_PER_S,
    }
    return document


def render_diff(report: DiffReport, era: Era, output: str, out: TextIO) -> None:
    """Print the verdicts."""
    if output == "json":
        _write_json(diff_document(report, era), out)
    elif output == "jsonl":
        _write_lines((judgement_document(j) for j in report.judgements), out)
    else:
        console = _console(out)
        console.print(_summary_table(report))
        for judgement in report.divergences:
            _print_divergence(console, judgement)
        console.print(_closing_line(report, era))
        if output == "wide":
            console.print(_judgement_table(report.judgements, why=True))


def render_actions(report: DiffReport, era: Era, output: str, out: TextIO) -> None:
    """Print what the ported controllers do under the observed schedule."""
    actions = [j for j in report.judgements if _by_the_port(j)]
    if output == "json":
        document = {
            "schema_version": SCHEMA_VERSION,
            "kubernetes_version": str(era.version),
            "warnings": list(era.warnings),
            "observations": report.observations,
            "actions": [action_document(j) for j in actions],
        }
        _write_json(document, out)
    elif output == "jsonl":
        _write_lines((action_document(j) for j in actions), out)
    else:
        _console(out).print(_judgement_table(actions, why=output == "wide"))


def _by_the_port(judgement: Judgement) -> bool:
    return judgement.verdict not in (Verdict.FOREIGN, Verdict.UNKNOWABLE, Verdict.EXTRA)


def _write_json(document: Any, out: TextIO) -> None:
    out.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")


def _write_lines(documents: Iterable[Any], out: TextIO) -> None:
    out.writelines(orjson.dumps(document).decode() + "\n" for document in documents)


def _console(out: TextIO) -> Console:
    # Not a terminal: let a table have the width that it needs.
    return Console(file=out, width=None if out.isatty() else 200, highlight=False)


def _summary_table(report: DiffReport) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("CONTROLLER", "ACTION"):
        table.add_column(heading)
    for verdict in Verdict:
        table.add_column(verdict.value.upper(), justify="right")
    for controller, actions in report.summary().items():
        for action, counts in actions.items():
            cells = [
                Text(str(counts[v.value]), style=_style(v) if counts[v.value] else "dim")
                for v in Verdict
            ]
            table.add_row(controller, action, *cells)
    return table


def _style(verdict: Verdict) -> str:
    return _STYLES.get(verdict, "bold red")


def _print_divergence(console: Console, judgement: Judgement) -> None:
    where = judgement.object
    console.print()
    console.print(
        Text.assemble(
            (judgement.verdict.value.upper(), "bold red"),
            f" {judgement.action} of {where.kind} {where.namespace}/{where.name}: "
            f"{judgement.subject}",
        )
    )
    console.print(
        Text(
            f"  at {format_rfc3339(judgement.time_ns)}, "
            f"resourceVersion {judgement.resource_version}"
        )
    )
    console.print(Text(f"  {judgement.why}"))
    for difference in judgement.fields:
        console.print(
            Text(
                f"  {difference.path}: expected {_short(difference.expected)}, "
                f"observed {_short(difference.observed)}"
            )
        )


def _short(value: Any) -> str:
    return orjson.dumps(value, default=str).decode()


def _closing_line(report: DiffReport, era: Era) -> Text:
    found = len(report.divergences)
    explained = sum(
        1 for j in report.judgements if j.verdict in (Verdict.MATCH, Verdict.MATCH_LAGGED)
    )
    verdict = "no divergence" if not found else f"{found} divergence{'s' if found > 1 else ''}"
    return Text(
        f"\n{era.version}: {len(report.jobs)} Jobs, {report.observations} observations, "
        f"{explained} actions explained (longest lag {report.longest_lag_ns / NS_PER_S:.3f} s), "
        f"{verdict}",
        style="bold red" if found else "bold green",
    )


def _judgement_table(judgements: Sequence[Judgement], *, why: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("TIME", "NAMESPACE", "NAME", "ACTION", "SUBJECT", "REVISION", "VERDICT"):
        table.add_column(heading)
    if why:
        table.add_column("WHY")
    for judgement in judgements:
        cells: list[str | Text] = [
            format_rfc3339(judgement.time_ns) or "",
            judgement.object.namespace,
            judgement.object.name,
            judgement.action,
            Text(judgement.subject),
            judgement.resource_version,
            Text(judgement.verdict.value, style=_style(judgement.verdict)),
        ]
        table.add_row(*cells, *([Text(judgement.why)] if why else []))
    return table
