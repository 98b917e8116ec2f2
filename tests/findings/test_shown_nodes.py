"""What `kubectl describe node` says of a node by its conditions and Events."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.findings.situations import said_at_ten
from tests.unit.cli.test_sql import run  # noqa: F401 - a fixture

GONE = "Kubelet stopped posting node status."


def since(clock: str) -> str:
    return f"Mon, 04 May 2026 {clock}:00 +0000"


def condition(kind: str, status: str, clock: str, reason: str, message: str) -> str:
    return f"  {kind:<16} {status:<7}  {since('09:59')}   {since(clock)}   {reason:<20} {message}\n"


def node(*conditions: str) -> str:
    return (
        "Name:               n9\nRoles:              <none>\nConditions:\n"
        "  Type   Status   LastHeartbeatTime   LastTransitionTime   Reason   Message\n"
        "  ----   ------   -----------------   ------------------   ------   -------\n"
        + "".join(conditions)
        + "Non-terminated Pods:          (1 in total)\n"
        "  Namespace  Name          CPU Requests\n  app        load-x2x4z    1 (6%)\n"
        "Events:              <none>\n\n"
    )


POD = """Name:             load-x2x4z
Namespace:        app
Node:             n9/10.0.0.9
Status:           Running
Controlled By:    Job/load
Containers:
  main:
    Image:          busybox
    State:          Running
Events:
  Type    Reason                Age  From                      Message
  ----    ------                ---  ----                      -------
  Normal  TaintManagerEviction  20m  taint-eviction-controller Marking for deletion Pod app/load-x2x4z
"""
WELL = condition("Ready", "True", "08:30", "KubeletReady", "kubelet is posting ready status")
LOST = condition("Ready", "Unknown", "09:34", "NodeStatusUnknown", GONE)
UNKNOWN = condition("MemoryPressure", "Unknown", "09:34", "NodeStatusUnknown", GONE)
FULL = condition(
    "DiskPressure", "True", "09:35", "KubeletHasDiskPressure", "kubelet has disk pressure"
)


@pytest.mark.parametrize(
    ("text", "says", "not_said"),
    [
        (
            node(UNKNOWN, LOST),
            ("TK445 Node n9: was shown with Ready Unknown",
             f"condition Ready Unknown since 2026-05-04 09:34:00Z ({GONE})", "See why node n9 was lost"),
            ("MemoryPressure", "Events of node"),
        ),
        (node(FULL, WELL), ("was shown with DiskPressure True", "Free the disk of node n9"), ("Ready",)),
        (node(WELL), (), ("TK445",)),
        (
            # autoscaler#2967; the value is when it was set, in Unix s.
            node(WELL).replace("Roles:", "Taints:             ToBeDeletedByClusterAutoscaler="
                               "1777888698:NoSchedule\n                    gpu:NoSchedule\nRoles:"),
            ("INFO TK445 Node n9: was shown with taint ToBeDeletedByClusterAutoscaler",
             "since 2026-05-04 09:58:18Z"), ("gpu", "condition"),
        ),
        (
            node(LOST) + POD,
            ("Pod app/load-x2x4z: was ended by the taint-eviction-controller",
             "Node n9: condition Ready Unknown since 2026-05-04 09:34:00Z"),
            ("TK445 Node n9",),
        ),
        (node(WELL) + POD, ("was ended by the taint-eviction-controller",), ("condition", "Node n9")),
    ],
    ids=["lost", "a full disk", "well", "taken away", "why its pod was ended", "well before its pod was ended"],
)  # fmt: skip
def test_conditions_of_a_described_node_are_told(
    text: str, says: tuple[str, ...], not_said: tuple[str, ...],
    run, tmp_path: Path,  # noqa: F811
) -> None:  # fmt: skip
    out = said_at_ten(run, tmp_path / "described.txt", text)
    assert [part for part in says if part not in out] == [], out
    assert [part for part in not_said if part in out] == [], out


DESCRIBED = """Name:               n9
Roles:              <none>
Labels:             a=b
Unschedulable:      false
Conditions:
  Type   Status   LastHeartbeatTime   LastTransitionTime   Reason   Message
Non-terminated Pods:          (1 in total)
  Namespace  Name          CPU Requests
  app        load-x2x4z    1 (6%)
Events:
  Type     Reason        Age    From             Message
  ----     ------        ----   ----             -------
  Warning  SystemOOM     12m    kubelet          System OOM encountered, victim process: py, pid: 4
  Normal   NodeNotReady  11m    node-controller  Node n9 status is now: NodeNotReady
"""


def test_a_description_of_a_node_tells_of_its_events(run, tmp_path: Path) -> None:  # noqa: F811
    out = said_at_ten(run, tmp_path / "node.txt", DESCRIBED)
    assert "INFO TK445 Node n9: was shown with SystemOOM" in out
    assert "SystemOOM at 2026-05-04 09:48:00Z" in out
    assert "NodeNotReady at 2026-05-04 09:49:00Z" in out
