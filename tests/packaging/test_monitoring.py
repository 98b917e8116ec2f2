"""Dashboard and alerts ask for metrics that are there, by labels that these have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from unittest.mock import MagicMock

import pytest
import yaml

from tests.support.traces import ROOT
from tracekit.record.operation.manifests import alert_groups
from tracekit.record.operation.metrics import RecorderCollector
from tracekit.watch.metrics import WatchCollector

DASHBOARD = json.loads((ROOT / "packaging" / "monitoring" / "dashboard.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
RULES = yaml.safe_load((ROOT / "packaging" / "chart" / "files" / "rules.yaml").read_text())


@pytest.fixture(scope="module")
def metrics() -> dict[str, set[str]]:
    """The labels of each series that is served, by its name."""
    live, events, recorder, watcher = MagicMock(), MagicMock(), MagicMock(), MagicMock()
    live.counts.divergences = {("job", "event", "extra"): 1}
    live.counts.findings = {"TK208": 1}
    live.now_ns = 1
    events.results.return_value = {"written": 1}
    watcher.spec.name, watcher.status.failures = "jobs", {"http": 1}
    watcher.behind_ns.return_value = watcher.status.last_byte_ns = 1
    recorder.watchers, recorder.lag_s.return_value = [watcher], (1.0, "jobs")
    collectors = (WatchCollector(live, MagicMock(), events), RecorderCollector(recorder))
    return {
        sample.name: set(sample.labels)
        for collector in collectors
        for metric in collector.collect()
        for sample in metric.samples
    }


def expressions() -> Iterator[str]:
    for panel in PANELS:
        yield from (target["expr"] for target in panel["targets"])
    for rule in RULES["groups"][0]["rules"]:
        yield rule["expr"]


@pytest.mark.parametrize("expression", list(expressions()))
def test_an_expression_asks_for_what_is_served(expression: str, metrics) -> None:
    names = re.findall(r"tracekit_\w+", expression)
    assert names
    for name in names:
        assert name in metrics
        grouped = re.search(r"by \(([^)]*)\)", expression)
        wanted = {label.strip() for label in grouped[1].split(",")} if grouped else set()
        assert wanted <= metrics[name]


def test_a_legend_names_labels_that_its_series_have(metrics) -> None:
    for panel in PANELS:
        for target in panel["targets"]:
            (name,) = re.findall(r"tracekit_\w+", target["expr"])
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= metrics[name]


def test_panels_do_not_lie_on_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)


def test_each_alert_has_a_test_of_promtool() -> None:
    assert alert_groups() == RULES
    tests = yaml.safe_load((ROOT / "packaging" / "monitoring" / "rules_test.yaml").read_text())
    tested = {
        (case["alertname"], bool(case["exp_alerts"]))
        for test in tests["tests"]
        for case in test["alert_rule_test"]
    }
    names = {rule["alert"] for rule in RULES["groups"][0]["rules"]}
    assert tested == {(name, fires) for name in names for fires in (True, False)}
