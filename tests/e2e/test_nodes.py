"""Replay of a run on real kubelets and a real scheduler, as nodes are drained, tainted and lost.

The controllers, the scheduler and the kubelets are upstream's, so that every divergence is a false
alarm. What the stand-in does not write is asked for: a record without it would prove nothing.
"""

from collections import Counter
from pathlib import Path

import pytest

from bench.bench_fidelity import judged
from tests.e2e import generate
from tests.e2e.audit import lines
from tracekit.check.verdict import Judgement, Verdict

pytestmark = pytest.mark.e2e

MINUTES = "1.5"  # until the node that was lost is back


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of the default version: hollow nodes are made of its kubelet."""
    folder: Path = tmp_path_factory.mktemp("nodes") / "run"
    asked = ["--scenarios", "churn,crons", "--churn-jobs", "30", "--minutes", MINUTES]
    assert generate.main([*asked, "--hollow-nodes", "-o", str(folder)]) in (0, 1)
    return folder


@pytest.fixture(scope="module")
def judgements(run: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Judgement]:
    return judged(run / "watch.jsonl.zst", run, tmp_path_factory.mktemp("nodes") / "trace")


def test_nothing_diverges(judgements: list[Judgement]) -> None:
    assert [str(j) + j.why for j in judgements if j.divergent] == []


def test_most_actions_are_explained(judgements: list[Judgement]) -> None:
    counts = Counter(judgement.verdict for judgement in judgements)
    assert counts[Verdict.MATCH] > 200
    assert counts[Verdict.UNKNOWABLE] <= len(judgements) / 100


def test_nodes_were_drained_tainted_and_crowded(run: Path) -> None:
    reasons, tellers = set(), set()
    for row in lines(run / "watch.jsonl.zst"):
        for condition in row["object"].get("status", {}).get("conditions", ()):
            if condition["type"] == "DisruptionTarget":
                reasons.add(condition["reason"])
        tellers.add((row["object"].get("source") or {}).get("component"))
    assert reasons >= {
        "EvictionByEvictionAPI",
        "DeletionByTaintManager",
        "PreemptionByScheduler",
    }
    assert tellers >= {"kubelet", "node-controller", "job-controller"}
