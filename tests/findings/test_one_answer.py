"""What `diagnose` says of a trace, the page, SQL, JSON, JUnit, SARIF and Markdown say as well."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.findings.conftest import Traces
from tests.findings.matrix import INCIDENTS, NAMES
from tracekit.answers.findings.advice import advice, advice_of
from tracekit.answers.findings.diagnosis import diagnose, diagnosed
from tracekit.answers.model import Finding
from tracekit.answers.parts import OnePart
from tracekit.base.escaping import for_terminal
from tracekit.base.time_input import ALWAYS
from tracekit.report.ci import junit_of_findings, sarif_of_findings
from tracekit.report.findings import document, markdown_lines
from tracekit.report.html.about import About
from tracekit.report.html.lanes import finding_row
from tracekit.report.html.scope import scope_of
from tracekit.sql.diagnosed import facts_from
from tracekit.sql.findings import diagnosis_of
from tracekit.sql.session import Session

#: Id, severity and sentence of each finding, worst first.
Said = list[tuple[str, str, str]]


def said(findings: list[Finding]) -> Said:
    return [(f.id, f.severity.value, f.text) for f in findings]


def in_junit(text: str) -> Said:
    found = []
    for case in ET.fromstring(text.encode()).iter("testcase"):  # noqa: S314 - our own
        failure = case.find("failure")
        severity = "info" if failure is None else failure.get("type")
        found.append((case.get("classname") or "", severity or "", case.get("name") or ""))
    return found


def in_sarif(found: dict[str, Any]) -> list[tuple[str, str, list[str]]]:
    return [
        (
            result["ruleId"],
            result["message"]["text"].partition("\ndo: ")[2],
            [place["fullyQualifiedName"] for place in result["locations"][0]["logicalLocations"]],
        )
        for result in found["runs"][0]["results"]
    ]


def objects(finding: Finding) -> list[str]:
    return [f"{t.namespace}/{t.name}" if t.namespace else t.name for t in finding.objects]


def hold(path: Path) -> None:
    """All of them say the same of one trace."""
    with closing(Session([path])) as session:
        facts = facts_from(session)
        findings = diagnose(facts)
        found = diagnosed(OnePart(facts))
        assert diagnosis_of(session) == diagnosis_of(session) == found  # as it is, and as kept
        about = About(session, scope_of(session, None, ALWAYS, None), found)
        rows = [finding_row(finding, lambda ns: ns, "x") for finding in about.found]
        table = session.table(_SQL).to_pylist()
    wanted = said(findings)
    assert [(r["id"], r["severity"], r["text"]) for r in rows] == wanted
    assert [r["do"] for r in rows] == [advice(f, "x") for f in findings]
    told = document(findings, trace="x", kubernetes_version=None)["findings"]
    assert [(f["id"], f["severity"], f["text"]) for f in told] == wanted
    printed = [(i, s, for_terminal(text)) for i, s, text in wanted]
    assert in_junit(junit_of_findings(findings, "x")) == printed
    assert in_sarif(sarif_of_findings(findings, "x")) == [
        (f.id, advice(f, "x"), objects(f)) for f in findings
    ]
    assert len([*markdown_lines(findings)]) == len(findings) + 4
    by_sql = [
        (r["rank"], r["id"], r["claim"], r["advice"], r["caused_by"]) for r in table
    ]  # fmt: skip
    assert by_sql == sorted(
        (
            rank,
            f.id,
            case.claim,
            advice_of(case, str(path)),
            None if case.cause is None else case.cause.id,
        )
        for rank, f in enumerate(findings, 1)
        for case in f.cases
    )


_SQL = "SELECT rank, id, claim, advice, caused_by FROM findings ORDER BY ALL"


@pytest.mark.parametrize("name", ["v1.36.3-troubles", *INCIDENTS])
def test_each_form_says_the_same(name: str, traces: Traces) -> None:
    hold(traces.path(name))


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in NAMES if name not in INCIDENTS])
def test_each_form_says_the_same_of_every_trace(name: str, traces: Traces) -> None:
    hold(traces.path(name))


def test_json_is_json(traces: Traces) -> None:
    findings = traces.findings("v1.36.3-troubles")
    text = json.dumps(document(findings, trace="x", kubernetes_version=None))
    assert len(json.loads(text)["findings"]) == len(findings)
