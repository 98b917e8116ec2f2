"""Findings as text for a terminal, Markdown, and JSON (docs/diagnose.schema.json)."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tracekit.answers.findings.advice import advice
from tracekit.answers.findings.failures import failures_sentence
from tracekit.answers.harm import Harm
from tracekit.answers.model import Case, Finding, Rule, Severity
from tracekit.answers.words import clock, counted
from tracekit.base.escaping import for_markdown, for_terminal
from tracekit.base.kube.timestamps import format_rfc3339

SCHEMA_VERSION = 1
REPOSITORY = "kubernetes/kubernetes"
#: So many findings are told with evidence and advice; those after them in one sentence each.
TOLD_IN_FULL = 5
_OBJECTS_SHOWN = 4
_INDENT = 15


def thread_url(number: int) -> str:
    """Where the discussion of a finding is."""
    return f"https://github.com/{REPOSITORY}/issues/{number}"


#### Text ####


def text_lines(
    findings: Sequence[Finding],
    *,
    width: int = 80,
    full: bool = False,
    trace: str | None = None,
) -> Iterator[str]:
    """The findings for a terminal of that width, then one line that counts them."""
    before: dict[str, str] = {}
    for place, finding in enumerate(findings):
        thread = f" (#{finding.thread})" if finding.thread else ""
        head = f"{finding.severity.value.upper():<8}{finding.id}  {finding.text}{thread}"
        yield from _wrapped(head, width)
        if full or place < TOLD_IN_FULL:
            for line in _evidence(finding, most=10 if full else 1):
                yield from _wrapped(" " * _INDENT + line, width)
            todo = advice(finding, trace)
            before[finding.id] = todo
            yield from _wrapped(" " * _INDENT + f"do: {_once(finding, todo, before)}", width)
    if failed := failures_sentence(findings):
        yield from _wrapped(failed, width, indent=2)
    yield closing(findings)


def _once(finding: Finding, todo: str, before: Mapping[str, str]) -> str:
    """What to do; of what its cause has said already, that it has."""
    if finding.cause is None or finding.cause.id not in before:
        return todo
    see = f"see {finding.cause.id}."
    return see if todo == f"{see} {before[finding.cause.id]}" else todo


def closing(findings: Sequence[Finding]) -> str:
    """How many there are."""
    if not findings:
        return "No findings."
    counts = Counter(finding.severity for finding in findings)
    # "info" is not counted like a noun.
    parts = [
        f"{counts[s]} info" if s is Severity.INFO else counted(counts[s], s.value)
        for s in Severity
        if counts[s]
    ]
    return f"{counted(len(findings), 'finding')}: {', '.join(parts)}"


def _evidence(finding: Finding, *, most: int) -> Iterator[str]:
    several = len(finding.objects) > 1
    for case in finding.cases[:most]:
        yield f"{case.target.name}: {case.detail}" if several else case.detail
    left = len(finding.cases) - most
    if several and left > 0 and most == 1:
        others = [case.target.name for case in finding.cases[1:_OBJECTS_SHOWN]]
        more = len(finding.cases) - _OBJECTS_SHOWN
        yield f"also {', '.join(others)}" + (f" and {more} more" if more > 0 else "")
    elif left > 0:
        yield f"and {left} more"


def _wrapped(line: str, width: int, indent: int = _INDENT) -> list[str]:
    return textwrap.wrap(
        for_terminal(line),
        width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    ) or [""]


#### Markdown ####


def markdown_lines(findings: Sequence[Finding], trace: str | None = None) -> Iterator[str]:
    """The findings as a Markdown table, for an issue or a chat."""
    yield "| | id | what | since | evidence | do | thread |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for finding in findings:
        thread = f"{REPOSITORY}#{finding.thread}" if finding.thread else ""
        cells = (
            finding.severity.value,
            finding.id,
            finding.text,
            clock(finding.from_ns),
            " · ".join(_evidence(finding, most=1)),
            advice(finding, trace),
            thread,
        )
        yield f"| {' | '.join(for_markdown(cell) for cell in cells)} |"
    yield ""
    failed = failures_sentence(findings)
    yield f"{for_markdown(failed)}. {closing(findings)}" if failed else closing(findings)


def rule_lines(rules: Iterable[Rule], *, width: int = 80) -> Iterator[str]:
    """Every rule with how it is decided, for `--list`."""
    for rule in rules:
        thread = f" (#{rule.thread})" if rule.thread else ""
        yield from _wrapped(
            f"{rule.severity.value.upper():<8}{rule.id}  {rule.title}{thread}", width
        )
        for text in (rule.decided, f"False alarms: {rule.false_alarms}"):
            yield from _wrapped(" " * _INDENT + text, width)


#### JSON ####


def document(
    findings: Sequence[Finding], *, trace: str, kubernetes_version: str | None
) -> dict[str, Any]:
    """What `diagnose -o json` prints."""
    return {
        "schema_version": SCHEMA_VERSION,
        "trace": trace,
        "kubernetes_version": kubernetes_version,
        "findings": [finding_document(finding, trace) for finding in findings],
    }


def finding_document(finding: Finding, trace: str | None = None) -> dict[str, Any]:
    """One finding as JSON."""
    return {
        "id": finding.id,
        "severity": finding.severity.value,
        "title": finding.rule.title,
        "text": finding.text,
        "from": format_rfc3339(finding.from_ns),
        "until": format_rfc3339(finding.until_ns),
        "objects": [target._asdict() for target in finding.objects],
        "evidence": [_case_document(case) for case in finding.cases],
        "do": advice(finding, trace),
        "harm": _harm_document(finding.harm_in_all),
        "caused_by": None if finding.cause is None else finding.cause.id,
        "thread": None
        if finding.thread is None
        else {
            "repository": REPOSITORY,
            "number": finding.thread,
            "url": thread_url(finding.thread),
        },
    }


def _harm_document(harm: Harm) -> dict[str, Any]:
    """What it cost, with what follows from it."""
    return {name: getattr(harm, name) for name in harm.__struct_fields__}


def _case_document(case: Case) -> dict[str, Any]:
    target = case.target
    return {
        "object": {"kind": target.kind, "namespace": target.namespace, "name": target.name},
        "cronjob": case.cronjob,
        "from": format_rfc3339(case.from_ns),
        "until": format_rfc3339(case.until_ns),
        "detail": case.detail,
        "actor": case.actor,
        "facts": dict(case.evidence),
    }
