"""Completion as a user gets it: the printed script in a real bash, which asks the command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sql.conftest import trace_path  # noqa: F401 - a fixture

#: What bash does when Tab is pressed: it calls the function that `complete -F` named.
_TAB = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
compopt() { local IFS=' '; echo "compopt $*"; }
spec=$(complete -p tracekit); function=${spec#*-F }; function=${function%% *}
COMPREPLY=(); $function tracekit "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory, trace_path):  # noqa: F811
    """Press Tab after some words, in a directory with the trace `run`."""
    bash = shutil.which("bash")
    assert bash is not None, "completion is tested in a real bash: install it"
    place = tmp_path_factory.mktemp("shell")
    (place / "run").symlink_to(trace_path("v1.36.3-restart"))
    bin_ = place / "bin"
    bin_.mkdir()
    command = bin_ / "tracekit"
    root = Path(__file__).parents[3]
    command.write_text(f'#!/bin/sh\nPYTHONPATH={root} exec {sys.executable} -m tracekit "$@"\n')
    command.chmod(0o755)
    config = place / "config"
    config.write_text(
        "apiVersion: v1\nkind: Config\nclusters: []\nusers: []\ncurrent-context: prod\n"
        "contexts: [{name: prod, context: {cluster: c, user: u}},"
        " {name: staging, context: {cluster: c, user: u}}]\n"
    )
    environment = {
        **os.environ,
        "PATH": f"{bin_}:{os.environ['PATH']}",
        "KUBECONFIG": str(config),
        "XDG_CACHE_HOME": str(place / "cache"),
    }
    script = place / "completion.bash"
    done = subprocess.run(
        [command, "completion", "bash"], capture_output=True, check=True, env=environment
    )
    script.write_bytes(done.stdout)

    def tab(line: str) -> list[str]:
        words = [bash, "--norc", "-c", _TAB, "bash", str(script), *line.split(" ")]
        done = subprocess.run(
            words, capture_output=True, text=True, check=True, env=environment, cwd=place
        )
        assert done.stderr == "", done.stderr
        return [line for line in done.stdout.splitlines() if line]

    return tab


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("tracekit re", {"replay", "record", "redact", "report"}),
        ("tracekit replay run --no", set()),
        ("tracekit replay run --di", {"--diff"}),
        ("tracekit replay run -n t-pod-k", {"t-pod-killed"}),
        ("tracekit replay run --controller t", {"ttl"}),
        ("tracekit replay run --controller job,", {"job,cronjob", "job,ttl"}),
        ("tracekit replay run --kubernetes-version v1.1", {f"v1.1{n}" for n in range(1, 10)}),
        ("tracekit replay run --kubernetes-version 1.37", {"v1.37"}),
        (
            "tracekit replay run --feature-gates jobsucc",
            {"JobSuccessPolicy=true", "JobSuccessPolicy=false"},
        ),
        (
            "tracekit replay run --feature-gates JobReadyPods=true,JobSucc",
            {"JobReadyPods=true,JobSuccessPolicy=true", "JobReadyPods=true,JobSuccessPolicy=false"},
        ),
        ("tracekit replay run --job t-pod-killed/", {"t-pod-killed/victim"}),
        ("tracekit explain run t-pod-killed/", {"t-pod-killed/victim"}),
        ("tracekit explain run t-cronjobs/forb", {"t-cronjobs/forbid"}),
        ("tracekit report run t-pod-killed/", {"t-pod-killed/victim"}),
        ("tracekit jobs run --cronjob forb", {"forbid"}),
        ("tracekit jobs run --outcome F", {"failed"}),
        ("tracekit sql run --example backoff", {"backoff-cost"}),
        ("tracekit sql run -o j", {"json", "jsonl"}),
        ("tracekit record --context st", {"staging"}),
        ("tracekit completion z", {"zsh"}),
        ("tracekit versions v1.2", {f"v1.2{n}" for n in range(10)}),
        ("tracekit cron n", {"next"}),
    ],
)
def test_tab_completes(shell, line: str, wanted: set[str]) -> None:
    found = set(shell(line))
    assert wanted <= found
    assert found == wanted or line.endswith(("/", "forb"))
    assert (
        all(word.lower().startswith(line.rsplit(maxsplit=1)[-1].lower()) for word in wanted)
        or "1.37" in line
    )


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("tracekit replay r", "dirnames"),
        ("tracekit info r", "dirnames"),
        ("tracekit jobs r", "dirnames"),
        ("tracekit sql r", "dirnames"),
        ("tracekit explain r", "dirnames"),
        ("tracekit export r", "dirnames"),
        ("tracekit report r", "dirnames"),
        ("tracekit redact r", "dirnames"),
        ("tracekit import watch r", "default"),
    ],
)
def test_tab_lets_the_shell_list_paths(shell, line: str, kind: str) -> None:
    assert shell(line) == [f"compopt -o {kind}"]


@pytest.mark.parametrize("line", ["tracekit explain nothing x", "tracekit jobs nothing -n x"])
def test_tab_after_what_is_no_trace_says_nothing(shell, line: str) -> None:
    assert shell(line) == []
