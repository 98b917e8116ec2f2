"""Alert rules and dashboard, as Prometheus itself reads and evaluates them."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.e2e.tools import tool
from tests.support.traces import ROOT

pytestmark = pytest.mark.e2e  # promtool is built with Go when it is not cached


@pytest.mark.parametrize(
    "words",
    [
        ("check", "rules", "packaging/chart/files/rules.yaml"),
        ("test", "rules", "packaging/monitoring/rules_test.yaml"),
    ],
    ids=["check", "test"],
)
def test_promtool_has_nothing_to_say_against_them(words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [tool("promtool"), *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


#: What Grafana fills in before it asks.
FILLED = {"$__range": "6h", "$__rate_interval": "5m", "$namespace": ".*"}


def test_each_expression_of_the_dashboard_is_one() -> None:
    dashboard = json.loads((ROOT / "packaging" / "monitoring" / "dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            expression = target["expr"]
            for name, value in FILLED.items():
                expression = expression.replace(name, value)
            words = [tool("promtool"), "--experimental", "promql", "format", expression]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{panel['title']}: {done.stderr}"
