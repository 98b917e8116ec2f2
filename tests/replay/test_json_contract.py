"""What `replay -o json` prints is what docs/json.md and docs/replay.schema.json promise."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from tests.support.traces import ROOT, TRACES, import_log, json_lines
from tracekit.cli.replay import replay

SCHEMA: dict[str, Any] = json.loads((ROOT / "docs" / "replay.schema.json").read_text())
NAME = "v1.36.3-restart"
VICTIM = "t-fixed-completions/three"


def _validator(definition: str) -> jsonschema.protocols.Validator:
    validator = jsonschema.Draft202012Validator
    validator.check_schema(SCHEMA)
    return validator({**SCHEMA, "oneOf": [{"$ref": f"#/$defs/{definition}"}]})


def _replay(trace: Path, *options: str) -> Result:
    return CliRunner().invoke(replay, [str(trace), *options], standalone_mode=False)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target: Path = tmp_path_factory.mktemp("honest") / "trace"
    import_log(TRACES / NAME / "watch.jsonl.zst", target, NAME)
    return target


@pytest.fixture(scope="module")
def lying(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same trace, where one status counts one failure too many."""
    folder = tmp_path_factory.mktemp("lying")
    log = folder / "log.jsonl"
    changed = False
    with log.open("w") as out:
        for row in json_lines(TRACES / NAME / "watch.jsonl.zst"):
            status = row["object"].get("status", {})
            meta = row["object"].get("metadata", {})
            if (
                row["resource"] == "jobs"
                and not changed
                and row["type"] == "MODIFIED"
                and f"{meta['namespace']}/{meta['name']}" == VICTIM
                and status.get("active")
            ):
                status["failed"] = 1
                changed = True
            out.write(json.dumps(row) + "\n")
    assert changed
    target: Path = folder / "trace"
    import_log(log, target, NAME)
    return target


def test_the_document_of_verdicts(honest: Path) -> None:
    result = _replay(honest, "--diff", "-o", "json")
    document = json.loads(result.stdout)
    _validator("verdicts").validate(document)
    assert (result.return_value, document["divergences"]) == (0, [])
    assert document["kubernetes_version"] == "v1.36.3"
    assert document["schema_version"] == 1


def test_divergences(lying: Path) -> None:
    result = _replay(lying, "--diff", "-o", "json")
    document = json.loads(result.stdout)
    _validator("verdicts").validate(document)
    assert result.return_value == 1
    found = document["divergences"]
    assert {f"{d['object']['namespace']}/{d['object']['name']}" for d in found} == {VICTIM}
    counted = sum(
        counts[verdict]
        for actions in document["summary"].values()
        for counts in actions.values()
        for verdict in ("different", "missing", "extra", "early", "late")
    )
    assert counted == len(found)
    fields = [field for d in found for field in d["fields"]]
    assert {"path": "status.failed", "expected": 0, "observed": 1} in fields
    assert _replay(lying, "--diff", "-o", "json", "--exit-zero").return_value == 0


def test_lines_of_judgements_are_what_the_summary_counts(lying: Path) -> None:
    document = json.loads(_replay(lying, "--diff", "-o", "json").stdout)
    lines = [
        json.loads(line)
        for line in _replay(lying, "--diff", "-o", "jsonl").stdout.split("\n")
        if line
    ]
    validator = _validator("judgement")
    for line in lines:
        validator.validate(line)
    for controller, actions in document["summary"].items():
        for action, counts in actions.items():
            for verdict, count in counts.items():
                same = [
                    line
                    for line in lines
                    if (line["controller"], line["action"], line["verdict"])
                    == (controller, action, verdict)
                ]
                assert len(same) == count, (controller, action, verdict)


def test_actions(honest: Path) -> None:
    document = json.loads(_replay(honest, "-o", "json").stdout)
    _validator("actions").validate(document)
    assert document["actions"]
    lines = [json.loads(line) for line in _replay(honest, "-o", "jsonl").stdout.split("\n") if line]
    assert lines == document["actions"]
    validator = _validator("action")
    for line in lines:
        validator.validate(line)


def test_the_schema_refuses_what_the_contract_forbids(lying: Path) -> None:
    document = json.loads(_replay(lying, "--diff", "-o", "json").stdout)
    validator = _validator("verdicts")
    for break_it in (
        lambda d: d.pop("observations"),
        lambda d: d.update(schema_version=2),
        lambda d: d["summary"]["job"].pop("event"),
        lambda d: d["summary"]["job"]["event"].pop("late"),
        lambda d: d["divergences"][0].update(verdict="match"),
        lambda d: d["divergences"][0].update(time="yesterday"),
        lambda d: d["divergences"][0]["object"].pop("uid"),
        lambda d: d["divergences"][0].pop("resource_version"),
    ):
        broken = json.loads(json.dumps(document))
        break_it(broken)
        assert not validator.is_valid(broken)
    later = json.loads(json.dumps(document))
    later["digest"] = "added later"
    later["divergences"][0]["hint"] = "added later"
    assert validator.is_valid(later)


def test_the_document_describes_every_field_of_the_schema() -> None:
    text = (ROOT / "docs" / "json.md").read_text()
    named = set(re.findall(r"`([\w-]+)`", text))
    for definition in SCHEMA["$defs"].values():
        assert set(definition.get("required", ())) <= named
        assert set(definition.get("properties", ())) <= named
        for field in definition.get("properties", {}).values():
            assert set(field.get("enum", ())) <= named
