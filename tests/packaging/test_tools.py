"""The GitHub Action's steps, run as the runner runs them, and the hook of pre-commit."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from tests.record.fakecluster import FakeCluster
from tests.record.fakeserver import FakeServer
from tests.record.harness import write_kubeconfig
from tests.support.traces import ROOT
from tracekit.cli.main import cli

ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = {step["id"]: step for step in ACTION["runs"]["steps"]}
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())


def run_step(name: str, folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run a step with the expressions of its `env` filled in."""
    values = {key: given.get("default", "") for key, given in ACTION["inputs"].items()}
    values |= {key.replace("_", "-"): text for key, text in inputs.items()}
    env = {**os.environ, "RUNNER_TEMP": str(folder / "temp"), "TRACEKIT_SETTLE_SECONDS": "0.3"}
    for variable in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        env[variable] = str(folder / variable)
    for variable, text in STEPS[name]["env"].items():
        filled = text.replace("${{ github.action_path }}", str(ROOT))
        for key, value in values.items():
            filled = filled.replace("${{ inputs." + key + " }}", value)
        assert "${{" not in filled
        env[variable] = filled
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[name]["run"]],
        cwd=folder, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A runner's folder in which the install step is done."""
    programs = tmp_path / "temp" / "tracekit" / "bin"
    programs.mkdir(parents=True)
    for name, words in (("tracekit", "-P -m tracekit"), ("python", "")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {words} "$@"\n')
        program.chmod(0o755)
    return tmp_path


def test_no_python_of_a_step_looks_into_the_checkout() -> None:
    begun = [line for line in STEPS["install"]["run"].splitlines() if "python3 " in line]
    assert begun
    assert all("python3 -I " in line for line in begun)


def test_no_input_is_part_of_a_script() -> None:
    """An expression in `run` would be run as the shell reads it."""
    assert [name for name, step in STEPS.items() if "${{" in step["run"]] == []


@pytest.mark.full
def test_it_records_around_the_command_and_judges(folder: Path) -> None:
    cluster = FakeCluster()
    cluster.create("namespaces", name="ns")
    server = FakeServer(cluster, bookmark_every_s=0.2)
    try:
        config = write_kubeconfig(folder / "config", server, namespace="ns")
        ran = run_step(
            "record", folder, run="touch ran; exit 7", kubeconfig=config, namespaces="ns"
        )
    finally:
        server.close()
    assert ran.returncode == 7, ran.stderr
    assert (folder / "ran").exists()
    judged = run_step("judge", folder)
    assert judged.returncode == 0, judged.stderr + judged.stdout
    outputs = dict(
        line.split("=", 1) for line in (folder / "GITHUB_OUTPUT").read_text().splitlines()
    )
    assert outputs["divergences"] == "0"
    assert json.loads((folder / outputs["sarif"]).read_text())["version"] == "2.1.0"
    assert "finding" in (folder / "GITHUB_STEP_SUMMARY").read_text()


@pytest.mark.parametrize(("fail_on", "status"), [("divergence", 1), ("never", 0), ("some", 2)])
def test_a_divergence_is_the_check(folder: Path, fail_on: str, status: int) -> None:
    made = CliRunner().invoke(cli, ["demo", "-o", str(folder / "demo")], standalone_mode=False)
    assert made.exception is None
    (folder / "tracekit-run").mkdir()
    (folder / "demo" / "lie").rename(folder / "tracekit-run" / "trace")
    for name in ("json", "venv", "tracekit"):  # the checkout is the working directory
        (folder / f"{name}.py").write_text("raise SystemExit('a stranger runs')")
    judged = run_step("judge", folder, fail_on=fail_on)
    assert judged.returncode == status, judged.stderr + judged.stdout
    if status < 2:
        assert "divergences=5" in (folder / "GITHUB_OUTPUT").read_text()


def test_a_recorder_that_cannot_begin_is_an_error(folder: Path) -> None:
    ran = run_step("record", folder, run="touch ran", kubeconfig=str(folder / "none"))
    assert ran.returncode == 2
    assert "::error" in ran.stdout
    assert not (folder / "ran").exists()


#### pre-commit ####

CRONJOB = """\
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec: {schedule: "%s"}
"""


def hook(*names: Path) -> int:
    (only,) = HOOKS
    program, *words = [*shlex.split(only["entry"]), *only["args"]]
    assert program == "tracekit"
    result = CliRunner().invoke(cli, [*words, *map(str, names)], standalone_mode=False)
    return 2 if result.exception is not None else int(result.return_value or 0)


def test_the_hook_reads_every_file_and_passes_over_others(tmp_path: Path) -> None:
    texts = {
        "good.yaml": CRONJOB % "0 3 * * *",
        "bad.yaml": CRONJOB % "0 2 31 2 *",
        "older.yaml": CRONJOB % "0 0 */2 * 1",  # 1.21 and earlier read it otherwise
        "service.yaml": "kind: Service\n",
        "template.yaml": "{{ if .Values.on }}\nkind: CronJob\n{{ end }}\n",
    }
    files = {name: tmp_path / name for name in texts}
    for name, text in texts.items():
        files[name].write_text(text)
    assert hook(files["good.yaml"], files["service.yaml"], files["template.yaml"]) == 0
    assert hook(files["service.yaml"]) == 0
    assert hook(files["older.yaml"]) == 0
    assert hook(files["good.yaml"], files["bad.yaml"]) == 1
    words = ["cron", "lint", str(files["good.yaml"]), str(files["bad.yaml"])]
    said = CliRunner().invoke(cli, words, standalone_mode=False).stdout
    for name in ("good.yaml", "bad.yaml"):  # which file is whose is said
        assert f"{files[name]}: " in said.replace("\n  ", " ").replace("\n", " ")


def test_of_several_sources_each_is_a_file(tmp_path: Path) -> None:
    good = tmp_path / "good.yaml"
    good.write_text(CRONJOB % "0 3 * * *")
    assert hook(good, tmp_path / "missing.yaml") == 2
    result = CliRunner().invoke(
        cli, ["cron", "lint", str(good), "* * * * *"], standalone_mode=False
    )
    assert "is no file" in str(result.exception)
