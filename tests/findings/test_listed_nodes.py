"""What Nodes in a list tell of the pods on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.findings.situations import RUNNING, Object, at, container, job, pod, said_at_ten
from tests.unit.cli.test_sql import run  # noqa: F401 - a fixture

GONE = "Kubelet stopped posting node status."


def node(*conditions: tuple[str, str, str], **spec: Any) -> Object:
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "n1", "uid": "n-1", "resourceVersion": "90",
                     "creationTimestamp": at("08:00"), "labels": {"zone": "a"}},
        "spec": {"podCIDR": "10.0.0.0/24", **spec},
        "status": {"images": [{"names": ["secret-image"]}], "conditions": [
            {"type": kind, "status": status, "lastTransitionTime": at(clock), "reason": "R",
             "message": GONE if kind == "Ready" else "m"} for kind, status, clock in conditions]},
    }  # fmt: skip


def runs(ready: str) -> Object:
    found = pod("Running", container("main", RUNNING))
    found["status"]["conditions"] = [
        {"type": "Ready", "status": ready, "lastTransitionTime": at("09:30")}
    ]
    return found


def listed(*objects: Object) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [*objects]})


KARPENTER = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule", "timeAdded": at("09:50")}
CORDON = {
    "key": "node.kubernetes.io/unschedulable",
    "effect": "NoSchedule",
    "timeAdded": at("09:10"),
}
LOST = ("Ready", "Unknown", "09:30")
#: By situation: the node, whether its pod is ready, what is said, and what is not.
ASKED: dict[str, tuple[Object, str, tuple[str, ...], tuple[str, ...]]] = {
    "lost": (node(LOST), "False", (
        "WARNING TK441 Job app/work: its pod is on node n1, which does not answer",
        "NodeNotReady since 2026-05-04 09:30:00Z: Kubelet stopped posting",
        "Node n1: condition Ready Unknown since 2026-05-04 09:30:00Z"), ("Events of node",)),
    "lost, cordoned": (node(LOST, unschedulable=True, taints=[CORDON]), "False", (
        "TK441", "spec.unschedulable since 2026-05-04 09:10:00Z"), ()),
    "karpenter#3185, taken away": (node(("Ready", "True", "08:30"), taints=[KARPENTER]), "True", (
        "INFO TK445 Node n1: was listed with taint karpenter.sh/disrupted, and runs pods of Jobs",
        "since 2026-05-04 09:50:00Z; app/work-a"), ("TK441", "condition")),
    "a drain that begins": (node(("Ready", "True", "08:30"), unschedulable=True), "True", (
        "INFO TK445 Node n1: was listed with spec.unschedulable",), ("since",)),
    "another taint": (node(("Ready", "True", "08:30"), taints=[{**KARPENTER, "key": "gpu"}]), "True",
                      (), ("TK445",)),
    "well": (node(("Ready", "True", "08:30")), "False", (), ("TK441",)),
    "a pod that answers": (node(LOST), "True", (), ("TK441",)),
    "just now": (node(("Ready", "Unknown", "10:00")), "False", (), ("TK441",)),
}  # fmt: skip


@pytest.mark.parametrize("asked", ASKED)
def test_a_node_that_does_not_answer_is_told(asked: str, run, tmp_path: Path) -> None:  # noqa: F811
    found, ready, says, not_said = ASKED[asked]
    out = said_at_ten(run, tmp_path / "list.json", listed(job(), runs(ready), found))
    assert [part for part in says if part not in out] == [], out
    assert [part for part in not_said if part in out] == [], out


def test_explain_says_the_same_and_images_are_not_kept(run, tmp_path: Path) -> None:  # noqa: F811
    file, trace = tmp_path / "list.json", tmp_path / "trace"
    file.write_text(listed(job(), runs("False"), node(LOST)))
    out = run("explain", str(file), "work", "--at", at("10:00"))[1]
    assert "warning TK441: its pod is on node n1" in out
    _, _, err = run("import", str(file), "-o", str(trace))
    assert "unknown kind" not in err
    raw = run(
        "sql", str(trace), "SELECT raw FROM observations WHERE stream = 'nodes'", "-o", "json"
    )[1]
    assert ("secret-image" in raw, "conditions" in raw) == (False, True)
