"""Workload files: what they make, and what is said of those that are none."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from tracekit.cli.main import main
from tracekit.cli.simulate import simulate_command
from tracekit.model.simulate.workload import schema

FILE = """
duration: 2m
kubernetesVersion: v1.36.3
seed: 4
controllers: {kubeApiQps: 20, kubeApiBurst: 30}
timing: {watchLag: [1ms, 40ms], latency: 5ms}
jobs:
- name: import
  namespace: shop
  spec: {completions: 5, parallelism: 2, completionMode: Indexed, backoffLimit: 3}
  pods: {run: 3s, byIndex: {"1": {failFirst: 1}}}
- name: many
  namespace: shop
  at: 10
  count: 6
  every: 200ms
  spec: {parallelism: 2, completions: 2}
cronJobs:
- name: report
  namespace: shop
  spec: {schedule: "* * * * *", concurrencyPolicy: Forbid}
  pods: {run: 70s}
actions:
- {at: 4s, target: jobs/shop/import, patch: {spec: {suspend: true}}}
- {at: 9s, target: jobs/shop/import, patch: {spec: {suspend: false}}}
- {at: 10500ms, target: pods/shop/many-1, ordinal: 0, delete: true}
faults:
  restarts: [{at: 60s, down: 2s}]
  refuse: [{at: 11s, until: 14s, namespace: shop}]
"""


def simulated(place: Path, text: str = FILE, *options: str) -> tuple[int, str, Path]:
    file = place / "workload.yaml"
    file.write_text(text, encoding="utf-8")
    out = place / "trace"
    result = CliRunner().invoke(
        simulate_command, ["--workload", str(file), "-o", str(out), *options], standalone_mode=False
    )
    told = result.output + (str(result.exception) if result.exception else "")
    return result.exit_code, told, out


def test_a_file_makes_a_trace_that_every_verb_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told, trace = simulated(tmp_path)
    assert (code, "of 8 Jobs under v1.36.3" in told) == (0, True), told
    for verb in (
        ["replay", str(trace), "--diff", "--min-actions", "80"],
        ["info", str(trace)],
        ["jobs", str(trace)],
        ["explain", str(trace), "shop/import"],
        ["diagnose", str(trace)],
        ["sql", str(trace), "SELECT count(*) AS n FROM jobs"],
    ):
        with pytest.raises(SystemExit) as ended:
            raise SystemExit(main(verb))
        assert ended.value.code in (0, None), verb
    assert "no divergence" in capsys.readouterr().out


def test_the_same_file_makes_the_same_bytes(tmp_path: Path) -> None:
    contents = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        _, _, trace = simulated(tmp_path / name)
        contents.append([path.read_bytes() for path in sorted((trace / "log").iterdir())])
    assert len(contents[0]) == len(contents[1])
    assert json.loads((tmp_path / "a/trace/trace.json").read_text())["scope"]["simulated"] is True


def test_the_schema_takes_the_file_and_refuses_others() -> None:
    document = yaml.safe_load(FILE)
    jsonschema.validate(document, schema())
    document["jobs"][0]["pods"]["runs"] = 3
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("duration: 2m", "duration: soon"), "duration: 'soon' is no duration"),
        (("duration: 2m", "duration: -1"), "must be 0 or more"),
        (("run: 3s", "runs: 3s"), "unknown field `runs`"),
        (("count: 6", "count: 0"), "count must lie between 1 and"),
        (("jobs/shop/import, patch", "jobs/import, patch"), "names nothing"),
        (("ordinal: 0, delete: true", "ordinal: 0"), "say either patch or delete"),
        (("seed: 4", "seed: four"), "Expected `int`"),
        (("duration: 2m", "duration: [2m"), "is not YAML"),
        (("[1ms, 40ms]", "[40ms, 1ms]"), "the least delay is longer than the most"),
        (("kubernetesVersion: v1.36.3", "kubernetesVersion: v0.9"), "0.9"),
        (("failFirst: 1}", "failFirst: maybe}"), "pods of shop/import"),
    ],
)
def test_a_wrong_file_is_one_sentence(change: tuple[str, str], says: str, tmp_path: Path) -> None:
    assert change[0] in FILE
    code, told, _ = simulated(tmp_path, FILE.replace(*change))
    assert code != 0
    assert says in told
    assert "Traceback" not in told
