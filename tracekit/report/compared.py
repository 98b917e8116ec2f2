"""Two Jobs side by side, as text and as a document: `tracekit compare`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO

from rich.text import Text

from tracekit.base.kube.field_changes import shown
from tracekit.report.rows import plain
from tracekit.report.table import Cell, write_line, write_table
from tracekit.sql.compared import Compared

_VALUE_CHARS = 200
_FIELDS = 40
_PODS = 20
#: A step that took so much longer, in seconds and as a multiple, is marked.
_LONGER_S, _LONGER = 1.0, 2.0


def write_compared(found: Compared, out: TextIO) -> None:
    """What came of them, what took how long, what differs of their specs, their pods."""
    if found.chosen:
        write_line(found.chosen, out)
        out.write("\n")
    headings = ["", *found.keys, ""]
    rows: list[list[Cell]] = [
        [fact.name, fact.first or "-", fact.second or "-", _mark(fact.first != fact.second)]
        for fact in found.facts
    ]
    rows += [
        [
            step.name,
            _seconds(step.first),
            _seconds(step.second),
            _mark(longer(step.first, step.second)),
        ]
        for step in found.steps
        if step.first is not None or step.second is not None
    ]
    write_table(headings, rows, out, fold={0, 1, 2})
    _write_fields(found, out)
    for key, pods in zip(found.keys, found.pods, strict=True):
        out.write("\n")
        write_line(f"Pods of {key}" if pods else f"No pod of {key} was seen", out, style="bold")
        if pods:
            shown_pods = [_pod(pod) for pod in pods[:_PODS]]
            write_table(["POD", "NODE", "END", "WAITED", "RAN"], shown_pods, out, right={3, 4})
        if len(pods) > _PODS:
            write_line(f"… {len(pods) - _PODS:,} more: -o json has all", out)


def _write_fields(found: Compared, out: TextIO) -> None:
    out.write("\n")
    if not found.fields:
        write_line("Their specs, labels and annotations are the same.", out, style="bold")
        return
    write_line("What differs of spec, labels and annotations", out, style="bold")
    rows = [
        [field.path, shown(field.old, _VALUE_CHARS), shown(field.new, _VALUE_CHARS)]
        for field in found.fields[:_FIELDS]
    ]
    write_table(["FIELD", *found.keys], rows, out)
    if len(found.fields) > _FIELDS:
        write_line(f"… {len(found.fields) - _FIELDS:,} more: -o json has all", out)


def longer(first: float | None, second: float | None) -> bool:
    """Whether one of two times is so much longer than the other that it stands out."""
    if first is None or second is None:
        return first is not second
    short, long = sorted((first, second))
    return long - short >= _LONGER_S and long >= short * _LONGER


def _mark(differs: bool) -> Text:
    return Text("≠" if differs else "", style="yellow")


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:,.3f} s".replace(".000", "")


def _pod(pod: Mapping[str, Any]) -> list[Cell]:
    code = f"exit code {pod['exit_code']}" if pod["exit_code"] is not None else ""
    end = ", ".join(part for part in (pod["phase"] or "", code, pod["reason"] or "") if part)
    return [pod["pod"], pod["node"] or "-", end, _seconds(pod["queue_s"]), _seconds(pod["run_s"])]


def compared_document(found: Compared) -> dict[str, Any]:
    """The same as JSON has it."""
    return {
        "schema_version": 1,
        "jobs": list(found.keys),
        "chosen": found.chosen or None,
        "facts": [
            {"name": f.name, "first": f.first, "second": f.second, "differs": f.first != f.second}
            for f in found.facts
        ],
        "steps_s": [
            {
                "name": s.name,
                "first": s.first,
                "second": s.second,
                "differs": longer(s.first, s.second),
            }
            for s in found.steps
        ],
        "fields": [{"path": f.path, "first": f.old, "second": f.new} for f in found.fields],
        "pods": [[plain(pod) for pod in pods] for pods in found.pods],
    }
