"""Findings and divergences for CI systems: JUnit XML and SARIF 2.1.0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from tracekit import __version__
from tracekit.answers.findings.advice import advice
from tracekit.answers.findings.divergences import rule_of
from tracekit.answers.findings.record import MISFIT
from tracekit.answers.model import Finding, Rule, Severity
from tracekit.base.escaping import for_terminal
from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.check.verdict import Judgement
from tracekit.report.documents import write_document
from tracekit.report.findings import thread_url

CI_FORMATS = ("junit", "sarif")
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def write_ci(
    judgements: Iterable[Judgement], output: str, trace: str, out: TextIO, misfit: str = ""
) -> None:
    """Write verdicts in one of `CI_FORMATS`; `misfit`: how the record contradicts the rules."""
    if output == "junit":
        out.write(junit_of_judgements(judgements, trace, misfit))
    else:
        write_document(sarif_of_judgements(judgements, trace, misfit), out)


#### JUnit ####


def junit_of_findings(findings: Sequence[Finding], trace: str) -> str:
    """One test case for each finding; errors and warnings fail."""
    suite = _suite(f"tracekit diagnose {trace}", len(findings))
    failures = 0
    for finding in findings:
        case = _case(suite, finding.id, finding.text)
        text = _text([*(c.detail for c in finding.cases), f"do: {advice(finding, trace)}"])
        if finding.severity is Severity.INFO:
            SubElement(case, "system-out").text = text
        else:
            failures += 1
            _fail(case, finding.severity.value, finding.text, text)
    return _xml(suite, failures)


def junit_of_judgements(judgements: Iterable[Judgement], trace: str, misfit: str = "") -> str:
    """One test case for each object that was judged; its divergences are the failures.

    One more, which fails, where the record as a whole contradicts the rules.
    """
    by_object: dict[tuple[str, str, str, str], list[Judgement]] = {}
    for judgement in judgements:
        where = judgement.object
        key = (judgement.controller, where.kind, where.namespace, where.name)
        by_object.setdefault(key, []).append(judgement)
    suite = _suite(f"tracekit replay --diff {trace}", len(by_object) + bool(misfit))
    failures = int(bool(misfit))
    if misfit:
        case = _case(suite, MISFIT.id, MISFIT.title)
        _fail(case, "misfit", MISFIT.title, for_terminal(misfit))
    for (controller, kind, namespace, name), found in by_object.items():
        case = _case(suite, f"{controller} controller", f"{kind} {namespace}/{name}")
        bad = [j for j in found if j.divergent]
        if bad:
            failures += 1
            first = bad[0]
            text = _text(_judged(j) for j in bad)
            _fail(case, first.verdict.value, f"{first.verdict.value} {first.action}", text)
    return _xml(suite, failures)


def _judged(judgement: Judgement) -> str:
    return (
        f"{judgement.verdict.value} {judgement.action} {judgement.subject} at "
        f"{format_rfc3339(judgement.time_ns)}, resourceVersion {judgement.resource_version}: "
        f"{judgement.why}"
    )


def _text(lines: Iterable[str]) -> str:
    return "\n".join(for_terminal(line) for line in lines)


def _suite(name: str, tests: int) -> Element:
    return Element("testsuite", name=for_terminal(name), tests=str(tests))


def _case(suite: Element, group: str, name: str) -> Element:
    return SubElement(suite, "testcase", classname=for_terminal(group), name=for_terminal(name))


def _fail(case: Element, kind: str, message: str, text: str) -> None:
    failure = SubElement(case, "failure", type=kind, message=for_terminal(message))
    failure.text = text


def _xml(suite: Element, failures: int) -> str:
    suite.set("failures", str(failures))
    root = Element("testsuites")
    root.append(suite)
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


#### SARIF ####


def sarif_of_findings(findings: Sequence[Finding], trace: str) -> dict[str, Any]:
    """One result for each finding, with its objects as logical locations."""
    results = [
        _result(
            finding.rule,
            finding.severity,
            f"{finding.text}. {finding.cases[0].detail}\ndo: {advice(finding, trace)}",
            [(t.kind, t.namespace, t.name) for t in finding.objects],
            trace,
        )
        for finding in findings
    ]
    return _sarif([finding.rule for finding in findings], results)


def sarif_of_judgements(
    judgements: Iterable[Judgement], trace: str, misfit: str = ""
) -> dict[str, Any]:
    """One result for each divergence, and one where the record contradicts the rules."""
    bad = [j for j in judgements if j.divergent]
    results = [
        _result(
            rule_of(j),
            Severity.ERROR,
            _judged(j),
            [(j.object.kind, j.object.namespace, j.object.name)],
            trace,
        )
        for j in bad
    ]
    rules = [rule_of(j) for j in bad]
    if misfit:
        whole = [("Trace", "", "the record")]
        results.insert(0, _result(MISFIT, Severity.ERROR, for_terminal(misfit), whole, trace))
        rules.append(MISFIT)
    return _sarif(rules, results)


def _result(
    rule: Rule, severity: Severity, text: str, objects: Sequence[tuple[str, str, str]], trace: str
) -> dict[str, Any]:
    kind, namespace, name = objects[0]
    return {
        "ruleId": rule.id,
        "level": _LEVELS[severity],
        "message": {"text": text},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": trace}},
                "logicalLocations": [
                    {"kind": k, "name": n, "fullyQualifiedName": f"{ns}/{n}" if ns else n}
                    for k, ns, n in objects
                ],
            }
        ],
        "partialFingerprints": {"tracekit/v1": f"{rule.id}/{kind}/{namespace}/{name}"},
    }


def _sarif(rules: Iterable[Rule], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    known = {rule.id: rule for rule in rules}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "tracekit",
                        "version": __version__,
                        "rules": [_rule(rule) for _, rule in sorted(known.items())],
                    }
                },
                "results": list(results),
            }
        ],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.decided},
        "help": {"text": rule.todo},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }
    if rule.thread is not None:
        found["helpUri"] = thread_url(rule.thread)
    return found
