"""Replay on a control plane that runs now: nothing diverges, and no action of it is left out.

One run of many scenarios side by side, recorded by the plain watch log of these tests. The API
server's audit log says what the Job controller did; the verdicts must account for each of it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import generate
from tests.e2e.scenarios import SCENARIOS
from tests.support.traces import AUDITED_KINDS, CONTROLLERS, as_audited, audited_writes, import_log

pytestmark = pytest.mark.e2e

#: What needs minutes: cron ticks, back-off after back-off, random jobs until the time is up.
SLOW = {"cronjobs", "backoff-limit", "backoff-limit-per-index", "churn"}
#: Here users write statuses and take tracking finalizers away, which a watch cannot always tell
#: from the controller's own work: it is reported, as docs/replay.md says under "Limits".
UNTELLABLE = {"foreign", "meddle"}
#: Long runs under load, which `python -m bench fidelity` makes and measures.
MEASURED = {"burst", "drain", "webhook", "quotas", "crons"}
EXPLAINED = ("match", "match-lagged")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run: watch log, audit log and what is known of it."""
    version = os.environ.get("TRACEKIT_E2E_VERSION", "v1.36.3")
    folder: Path = tmp_path_factory.mktemp("replay") / "run"
    names = ",".join(name for name in SCENARIOS if name not in SLOW | UNTELLABLE | MEASURED)
    asked = ["--version", version, "--scenarios", names, "--minutes", "0.5", "-o", str(folder)]
    assert generate.main(asked) in (0, 1), "there is no run; the log above says why"
    return folder


@pytest.fixture(scope="module")
def verdicts(run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The document of `tracekit replay --diff -o json` for the run."""
    trace = tmp_path_factory.mktemp("replay") / "trace"
    import_log(run / "watch.jsonl.zst", trace, run)
    done = subprocess.run(
        [
            *(sys.executable, "-c", "from tracekit.cli.main import main; main()"),
            *("replay", str(trace), "--diff", "-o", "json"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (1 if document["divergences"] else 0)
    return document


def test_the_watch_log_holds_every_revision_that_was_written(run: Path) -> None:
    about = json.loads((run / "about.json").read_text())
    assert "watch" not in about["errors"], about["errors"]


def test_nothing_diverges(verdicts: dict[str, Any]) -> None:
    assert verdicts["divergences"] == []


def test_every_action_of_the_audit_log_is_explained(run: Path, verdicts: dict[str, Any]) -> None:
    explained = {
        action: sum(counts[verdict] for verdict in EXPLAINED)
        for action, counts in verdicts["summary"]["job"].items()
    }
    audited = audited_writes(run, CONTROLLERS["job"])
    assert as_audited(explained) == {kind: audited[kind] for kind in AUDITED_KINDS}


def test_the_run_was_worth_it(verdicts: dict[str, Any]) -> None:
    """Every kind of action happened, so that none was agreed upon by its absence."""
    for action, counts in verdicts["summary"]["job"].items():
        if action != "pod-release":  # the pod to be released may end before a sync sees it
            assert sum(counts[verdict] for verdict in EXPLAINED), action


def test_nothing_is_unknowable_where_everything_was_recorded(verdicts: dict[str, Any]) -> None:
    summary = verdicts["summary"]["job"]
    assert {action: counts["unknowable"] for action, counts in summary.items()} == dict.fromkeys(
        summary, 0
    )
