"""The results of a replay as a table, as JSON or as JSON lines.

The JSON documents are a contract: see docs/json.md. Their keys are added to, never changed, within
one `schema_version`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import orjson
from rich.text import Text

from tracekit.base.escaping import for_terminal
from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.check.diff.report import DiffReport
from tracekit.check.verdict import Judgement, Verdict
from tracekit.report.documents import write_document, write_lines
from tracekit.report.table import counted, table_width, terminal_width, write_table
from tracekit.report.terminal import NO_WIDTH, write_indented
from tracekit.versions.era import Era

if TYPE_CHECKING:
    from rich.console import Console

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
        "misfit": report.misfit or None,
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
        write_document(diff_document(report, era), out)
    elif output == "jsonl":
        write_lines((judgement_document(j) for j in report.judgements), out)
    else:
        console = _console(out)
        _write_summary(report, out)
        shown = _one_of_a_kind(report) if report.misfit else report.divergences
        for judgement in shown:
            _print_divergence(console, judgement)
        if report.misfit:
            _print_misfit(console, report.misfit, hidden=len(report.divergences) - len(shown))
        console.print(_closing_lines(report, era))
        if output == "wide":
            console.print()
            _write_judgements(report.judgements, out, why=True)


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
        write_document(document, out)
    elif output == "jsonl":
        write_lines((action_document(j) for j in actions), out)
    else:
        _write_judgements(actions, out, why=output == "wide")


def _by_the_port(judgement: Judgement) -> bool:
    return judgement.verdict not in (Verdict.FOREIGN, Verdict.UNKNOWABLE, Verdict.EXTRA)


def _one_of_a_kind(report: DiffReport) -> list[Judgement]:
    """The first divergence of each kind: where a record contradicts the rules all are alike."""
    first: dict[tuple[str, str, Verdict], Judgement] = {}
    for judgement in report.divergences:
        first.setdefault((judgement.controller, judgement.action, judgement.verdict), judgement)
    return list(first.values())


def exit_status(*, divergent: bool, misfit: bool, exit_zero: bool) -> int:
    """1 with a divergence; 2 where the record contradicts the rules and none can be told."""
    if divergent:
        return 0 if exit_zero else 1
    return 2 if misfit else 0


def _console(out: TextIO) -> Console:
    from rich.console import Console  # noqa: PLC0415 - slow to import, and documents need none

    # Not a terminal: each sentence on a line of its own, however long.
    return Console(file=out, width=terminal_width(out) or NO_WIDTH, highlight=False)


def _write_summary(report: DiffReport, out: TextIO) -> None:
    """Counts by action and verdict, without rows and columns that are all zero."""
    rows = [
        (controller, action, counts)
        for controller, actions in report.summary().items()
        for action, counts in actions.items()
        if any(counts.values())
    ]
    shown = [v for v in Verdict if any(counts[v.value] for _, _, counts in rows)]
    if not rows:
        return
    headings = ["CONTROLLER", "ACTION", *(verdict.value.upper() for verdict in shown)]
    table: list[list[str | Text]] = [
        [controller, action, *(_count(counts[verdict.value], verdict) for verdict in shown)]
        for controller, action, counts in rows
    ]
    width = terminal_width(out)
    if width is None or table_width(headings, table) <= width:
        write_table(headings, table, out, right=range(2, len(headings)))
        return
    # Too many verdicts for the terminal: each action with the counts that it has, in words.
    words: list[list[str | Text]] = [
        [controller, action, _in_words(counts, shown)] for controller, action, counts in rows
    ]
    write_table(["CONTROLLER", "ACTION", "VERDICTS"], words, out, fold={2})


def _count(number: int, verdict: Verdict) -> Text:
    return Text(str(number), style=_style(verdict) if number else "dim")


def _in_words(counts: Mapping[str, int], shown: Sequence[Verdict]) -> Text:
    parts = [
        Text(f"{counts[verdict.value]} {verdict.value}", style=_style(verdict))
        for verdict in shown
        if counts[verdict.value]
    ]
    return Text(", ").join(parts)


def _style(verdict: Verdict) -> str:
    return _STYLES.get(verdict, "bold red")


def _print_divergence(console: Console, judgement: Judgement) -> None:
    where = judgement.object
    console.print()
    console.print(
        Text.assemble(
            (judgement.verdict.value.upper(), "bold red"),
            for_terminal(
                f" {judgement.action} of {where.kind} {where.namespace}/{where.name}: "
                f"{judgement.subject}"
            ),
        )
    )
    at = f"at {format_rfc3339(judgement.time_ns)}, resourceVersion {judgement.resource_version}"
    write_indented(Text(at), console)
    write_indented(Text(judgement.why), console)
    for difference in judgement.fields:
        expected, observed = _short(difference.expected), _short(difference.observed)
        text = f"{difference.path}: expected {expected}, observed {observed}"
        write_indented(Text(text), console)


def _print_misfit(console: Console, why: str, *, hidden: int) -> None:
    console.print()
    console.print(Text("MISFIT the record contradicts the rules as a whole", "bold red"))
    write_indented(Text(for_terminal(why)), console)
    if hidden:
        write_indented(Text("One divergence of each kind is shown; -o json has all."), console)


def _short(value: Any) -> str:
    return orjson.dumps(value, default=str).decode()


def _closing_lines(report: DiffReport, era: Era) -> Text:
    """What was found, in five short lines at most; the verdict is the last."""
    jobs = counted(len(report.jobs), "Job")
    how = "none of them with a cache that lagged"
    if lagged := report.how_many(Verdict.MATCH_LAGGED):
        ms = report.longest_lag_ns // 1_000_000
        behind = f"by {ms / 1000:.3f} s at most" if ms else "by less than 1 ms"
        how = f"{lagged:,} of them where a cache lagged, {behind}"
    lines = [
        f"{era.version}: {jobs}, {counted(report.observations, 'observation')}",
        f"{counted(report.explained, 'action')} explained, {how}",
    ]
    if foreign := report.how_many(Verdict.FOREIGN):
        lines.append(f"{foreign:,} foreign: another client's work")
    if unknowable := report.how_many(Verdict.UNKNOWABLE):
        lines.append(f"{unknowable:,} unknowable: -o wide says why of each")
    found = Counter(judgement.verdict.value for judgement in report.divergences)
    if found:
        kinds = ", ".join(f"{number:,} {verdict}" for verdict, number in sorted(found.items()))
        lines.append(f"{counted(found.total(), 'divergence')}: {kinds}")
    else:
        lines.append(_no_divergence(report))
    bad = found or report.misfit
    return Text("\n" + "\n".join(lines), style="bold red" if bad else "bold green")


def _no_divergence(report: DiffReport) -> str:
    """The last line where there is none: what was not judged cannot diverge."""
    if report.misfit:
        return "not judged"
    if not report.actions:
        return "no action was seen, so there was nothing to judge"
    return "no divergence" if report.decided else "no divergence, and nothing that could be judged"


def _write_judgements(judgements: Sequence[Judgement], out: TextIO, *, why: bool) -> None:
    headings = ["TIME", "OBJECT", "ACTION", "SUBJECT", "REVISION", "VERDICT"]
    rows: list[list[str | Text]] = [
        [
            format_rfc3339(judgement.time_ns) or "",
            f"{judgement.object.namespace}/{judgement.object.name}",
            judgement.action,
            judgement.subject,
            judgement.resource_version,
            Text(judgement.verdict.value, style=_style(judgement.verdict)),
            *([judgement.why] if why else []),
        ]
        for judgement in judgements
    ]
    write_table(
        [*headings, "WHY"] if why else headings, rows, out, fold={1, 3, 6} if why else {1, 3}
    )
