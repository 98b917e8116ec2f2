"""`tracekit diagnose`: incidents and lies in its first lines, its formats, filters and baselines."""

from __future__ import annotations

import io
import json
import random
import re
import shutil
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from tests.findings.conftest import Traces
from tests.lies import plant
from tests.support.traces import ROOT, TRACES, import_log, json_lines
from tests.support.watchlog import small_log, write_log
from tracekit.answers.findings.diagnosis import RULES
from tracekit.cli.main import main

TROUBLES = "v1.36.3-troubles"
#: What is told first, what follows from it, and where upstream discussed it.
INCIDENTS = {
    "counted-twice": ("TK201", "TK203", 105200),
    "deadline-no-controller": ("TK208", "TK424", None),
    "deadline-overrun": ("TK424", None, 107226),
    "duplicate-pod": ("TK201", "TK202", 130683),
    "duplicate-pod-v1.36": ("TK201", None, 130683),
    "failed-pods-vanish": ("TK401", "TK427", 74848),
    "finalizer-left": ("TK204", None, 109485),
    "missed-start": ("TK208", "TK301", 101148),
    "pods-outlive-history": ("TK423", None, 118834),
    "too-many-missed": ("TK206", "TK302", 42649),
    "too-many-missed-v1.36": ("TK206", "TK302", 42649),
}
LIES = ("pod-removed", "status-succeeded-high-once", "body-image", "deletion-extra", "ttl-missing")


class Done(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str


def tracekit(*words: str | Path) -> Done:
    """The command line, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    assert isinstance(left.value.code, int)
    return Done(left.value.code, out.getvalue(), err.getvalue())


def run(*words: str | Path) -> Done:
    return tracekit("diagnose", *words)


def test_every_incident_has_its_line() -> None:
    assert set(INCIDENTS) == {path.name for path in (TRACES / "incidents").iterdir()}


@pytest.mark.parametrize("name", INCIDENTS)
def test_an_incident_is_told_first_with_its_cause_above_it(name: str, traces: Traces) -> None:
    cause, beneath, thread = INCIDENTS[name]
    result = run(traces.path(f"incidents/{name}"))
    assert result.exit_code == 0
    found = re.findall(r"^[A-Z]+ +(TK\d+) (.*(?:\n {15}.*)*)", result.stdout, re.MULTILINE)
    assert [place for place, _ in found[:2]][: 1 + bool(beneath)] == [
        cause,
        *filter(None, [beneath]),
    ]
    assert thread is None or f"(#{thread})" in found[1 if beneath else 0][1]


@pytest.mark.parametrize("kind", LIES)
def test_a_lie_is_named_in_the_first_three_lines(kind: str, tmp_path: Path) -> None:
    rows = list(json_lines(TRACES / "v1.36.3-all" / "watch.jsonl.zst"))
    found = plant(kind, rows, random.Random(1))
    assert found is not None
    changed, lie = found
    log = tmp_path / "lie.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in changed))
    import_log(log, tmp_path / "lie", "v1.36.3-all")
    head = "\n".join(run(tmp_path / "lie").stdout.splitlines()[:3])
    assert head.startswith("ERROR   TK1")
    assert lie.key in head
    assert run(tmp_path / "lie", "--fail-on", "error").exit_code == 1


def test_the_table_fits_80_columns_and_cuts_nothing(
    traces: Traces, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Commands name the trace as it was named: a path is one word, which no column cuts.
    path = traces.path(TROUBLES)
    monkeypatch.chdir(path.parent)
    result = run(path.name, "-v")
    assert [line for line in result.stdout.splitlines() if len(line) > 80] == []
    assert "…" not in result.stdout
    told = " ".join(result.stdout.split())
    for finding in traces.findings(TROUBLES):
        assert finding.text in told


def test_json_follows_its_schema(traces: Traces) -> None:
    document = json.loads(run(traces.path(TROUBLES), "-o", "json").stdout)
    schema = json.loads((ROOT / "docs" / "diagnose.schema.json").read_text())
    jsonschema.validate(document, schema)
    roots = [f["severity"] for f in document["findings"] if f["caused_by"] is None]
    assert roots == sorted(roots, key=["error", "warning", "info"].index)
    grouped = next(f for f in document["findings"] if f["text"].startswith("4 Jobs of CronJob"))
    assert len(grouped["objects"]) == len(grouped["evidence"]) == 4
    threads = [f["thread"]["number"] for f in document["findings"] if f["thread"]]
    assert 131917 in threads


def test_markdown_prints_the_number_of_the_thread(traces: Traces) -> None:
    lines = run(traces.path(TROUBLES), "-o", "markdown").stdout.splitlines()
    assert any("| TK426 |" in line and "kubernetes/kubernetes#131917 |" in line for line in lines)


def test_junit_has_a_case_for_each_finding(traces: Traces) -> None:
    root = ET.fromstring(run(traces.path(TROUBLES), "-o", "junit").stdout.encode())  # noqa: S314 - our own
    cases = root.findall("testsuite/testcase")
    failed = [case for case in cases if case.find("failure") is not None]
    findings = traces.findings(TROUBLES)
    assert len(cases) == len(findings)
    assert len(failed) == sum(f.severity.value != "info" for f in findings)
    assert root.find("testsuite").get("failures") == str(len(failed))


def test_sarif_names_rules_and_objects(traces: Traces) -> None:
    document = json.loads(run(traces.path(TROUBLES), "-o", "sarif").stdout)
    run_ = document["runs"][0]
    known = {rule["id"] for rule in run_["tool"]["driver"]["rules"]}
    assert document["version"] == "2.1.0"
    assert {result["ruleId"] for result in run_["results"]} == known
    assert run_["results"][0]["locations"][0]["logicalLocations"][0]["fullyQualifiedName"]


@pytest.mark.full
def test_filters_choose_findings(traces: Traces) -> None:
    path = traces.path(TROUBLES)

    def ids(*words: str) -> set[str]:
        document = json.loads(run(path, "-o", "json", *words).stdout)
        return {f["id"] for f in document["findings"]}

    assert "TK402" in ids()
    assert "TK402" not in ids("-n", "t-refused")
    assert "TK405" in ids("-n", "t-refused")
    assert "TK402" not in ids("--since", "30s")
    assert "TK304" in ids("--since", "60s")
    assert "TK304" not in ids("--to", "-3m15s")
    assert ids("-l", "nobody=has-it") == {"TK208"}


def test_wrong_options_are_told(traces: Traces) -> None:
    for words, sentence in (
        (["-l", "a=(b"], "is no requirement"),
        (["--since", "1h", "--from", "-1h"], "leave one out"),
        (["--from", "-1m", "--to", "-2m"], "swap them"),
        (["--from", "some day"], "is no time"),
        (["--baseline", "nowhere.json"], "cannot be read"),
    ):
        done = run(traces.path(TROUBLES), *words)
        assert done.exit_code == 2
        assert sentence in done.stderr


def test_fail_on(traces: Traces) -> None:
    fine = traces.path("v1.36.3-churn7")
    assert run(fine, "--fail-on", "error").exit_code == 0
    assert run(fine, "--fail-on", "warning").exit_code == 1


def test_a_baseline_accepts_what_was_found(traces: Traces, tmp_path: Path) -> None:
    path, known = traces.path(TROUBLES), tmp_path / "known.json"
    run(path, "--write-baseline", known)
    document = json.loads(known.read_text())
    schema = json.loads((ROOT / "docs" / "baseline.schema.json").read_text())
    jsonschema.validate(document, schema)
    result = run(path, "--baseline", known, "--fail-on", "warning")
    assert (result.exit_code, result.stdout) == (0, "No findings.\n")
    document["accepted"] = [e for e in document["accepted"] if e["id"] != "TK402"]
    document["accepted"].append({"id": "TK4*", "name": "not-there"})
    known.write_text(json.dumps(document))
    result = run(path, "--baseline", known)
    assert result.stdout.startswith("WARNING TK402  Job t-troubles/oom:")
    assert "TK4* not-there, which does not occur" in result.stderr


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"schema_version": 1, "accepted": [{"name": "x"}]}', '{"accepted": []}']
)
def test_what_is_no_baseline_is_refused(text: str, traces: Traces, tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    known.write_text(text)
    done = run(traces.path(TROUBLES), "--baseline", known)
    assert done.exit_code == 2
    assert "known.json" in done.stderr


@pytest.fixture(scope="module")
def lying(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("lying")
    rows = list(json_lines(TRACES / "v1.36.3-all" / "watch.jsonl.zst"))
    found = plant("pod-removed", rows, random.Random(1))
    assert found is not None
    changed, lie = found
    log = folder / "lie.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in changed))
    import_log(log, folder / "lie", "v1.36.3-all")
    return folder / "lie", lie.key


@pytest.mark.full
def test_an_accepted_divergence_does_not_hide_the_next_one(
    lying: tuple[Path, str], tmp_path: Path
) -> None:
    path, key = lying
    known = tmp_path / "known.json"
    first = json.loads(run(path, "-o", "json").stdout)["findings"][0]
    assert first["evidence"][0]["facts"]["divergences"] > 1
    namespace, _, name = key.partition("/")
    entry = {"id": first["id"], "namespace": namespace, "name": name, "reason": "planted"}
    known.write_text(json.dumps({"schema_version": 1, "accepted": [entry]}))
    document = json.loads(run(path, "-o", "json", "--baseline", known).stdout)
    left = [f for f in document["findings"] if f["id"].startswith("TK1")]
    diff = tracekit("replay", path, "--diff", "--baseline", known, "-o", "json")
    remaining = json.loads(diff.stdout)["divergences"]
    assert bool(left) == bool(remaining) == bool(diff.exit_code)
    known.write_text(
        json.dumps({"schema_version": 1, "accepted": [{"id": "TK1*", "namespace": namespace}]})
    )
    diff = tracekit("replay", path, "--diff", "--baseline", known)
    assert diff.exit_code == 0


def test_verdicts_as_junit_and_sarif(lying: tuple[Path, str]) -> None:
    path, key = lying
    junit = tracekit("replay", path, "--diff", "-o", "junit")
    root = ET.fromstring(junit.stdout.encode())  # noqa: S314 - our own
    failed = [c.get("name") for c in root.iter("testcase") if c.find("failure") is not None]
    assert failed == [f"Job {key}"]
    assert junit.exit_code == 1
    sarif = tracekit("replay", path, "--diff", "-o", "sarif")
    results = json.loads(sarif.stdout)["runs"][0]["results"]
    assert {r["level"] for r in results} == {"error"}
    assert all(key in r["partialFingerprints"]["tracekit/v1"] for r in results)


def test_verdict_formats_need_diff(lying: tuple[Path, str]) -> None:
    assert "add --diff" in tracekit("replay", lying[0], "-o", "junit").stderr


def test_a_lost_part_is_the_first_finding(traces: Traces, tmp_path: Path) -> None:
    source = traces.path("v1.36.3-restart")
    broken = tmp_path / "broken"
    shutil.copytree(source, broken)
    for segment in (broken / "log").glob("*.parquet"):
        segment.write_bytes(segment.read_bytes()[:-100])
    assert run(broken).stdout.startswith("ERROR   TK902")


def test_what_cannot_be_judged_is_said(tmp_path: Path) -> None:
    log = write_log(tmp_path / "small.jsonl", small_log())
    imported = ("import", "watch", log, "-o", tmp_path / "small", "--kubernetes-version")
    assert tracekit(*imported, "v1.5.0").exit_code == 0
    assert "TK906" in run(tmp_path / "small").stdout


@pytest.mark.full
def test_the_version_that_was_taken_is_told(tmp_path: Path) -> None:
    log = write_log(tmp_path / "small.jsonl", small_log())
    assert tracekit("import", "watch", log, "-o", tmp_path / "small").exit_code == 0
    assert "does not say which Kubernetes version" in run(tmp_path / "small").stderr


def test_the_list_names_every_kind() -> None:
    listed = run("--list").stdout
    assert all(f" {rule.id}  " in listed for rule in RULES)


@pytest.mark.full
def test_names_cannot_command_the_terminal(tmp_path: Path) -> None:
    name = "oom\x1b[31m<b>|`"
    rows = json.dumps(list(json_lines(TRACES / TROUBLES / "watch.jsonl.zst")))
    rows = rows.replace('"oom"', json.dumps(name))
    log = tmp_path / "hostile.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in json.loads(rows)))
    import_log(log, tmp_path / "hostile", TROUBLES)
    for output in ("table", "markdown", "junit"):
        text = run(tmp_path / "hostile", "-o", output).stdout
        assert "\x1b" not in text
    ET.fromstring(text.encode())  # noqa: S314 - our own
