"""The table of tiers: its entries are there, and `make test` has each kind of thing once."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.mutation.test_witnesses import WITNESSES as ROWS
from tests.replay.test_planted_lies import CRON, FOUND
from tests.support import tiers
from tests.support.traces import ALL, about
from tracekit.cli.main import VERBS

TESTS = Path(__file__).resolve().parents[1]
#: Which tests run each verb.
OF_VERBS = {
    "demo": "unit/cli/test_demo.py",
    "record": "record/test_record_cli.py",
    "import": "unit/cli/test_import_watch.py",
    "merge": "unit/trace/test_merge.py",
    "manifests": "record/test_manifests.py",
    "info": "unit/cli/test_info.py",
    "diagnose": "findings/test_outputs.py",
    "jobs": "attack/test_outputs.py",
    "explain": "attack/test_outputs.py",
    "timeline": "attack/test_outputs.py",
    "compare": "attack/test_outputs.py",
    "who": "attack/test_outputs.py",
    "report": "unit/cli/test_report.py",
    "sql": "unit/cli/test_sql.py",
    "watch": "watch/test_watch_cli.py",
    "replay": "attack/test_outputs.py",
    "whatif": "attack/test_outputs.py",
    "upgrade": "whatif/test_verb.py",
    "simulate": "simulate/test_law.py",
    "versions": "unit/cli/test_versions.py",
    "cron": "unit/cli/test_cron_next.py",
    "minimise": "minimise/test_minimise.py",
    "redact": "record/test_redact.py",
    "compact": "unit/cli/test_compact.py",
    "export": "attack/test_outputs.py",
    "mcp": "mcp/test_server.py",
    "completion": "unit/cli/test_completion.py",
}


def test_each_test_of_the_table_is_there() -> None:
    named: dict[str, set[str]] = {}
    for key in tiers.QUICK:
        path, _, name = key.partition("::")
        named.setdefault(path, set()).add(name)
    for path, names in named.items():
        tree = ast.parse((TESTS / path).read_text())
        there = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert not names - there, path


def quick(path: str) -> list[dict[str, object]]:
    """The parameters of the file's tests that `make test` runs."""
    found = [sets for key, sets in tiers.quick.items() if key.partition("::")[0] == path]
    if not found:
        pytest.skip(f"{path} was not collected: run all tests")
    return [parameters for sets in found for parameters in sets]


def test_each_kind_of_lie_is_planted_once() -> None:
    planted = {parameters.get("kind") for parameters in quick("replay/test_planted_lies.py")}
    assert {*FOUND, *CRON} <= planted


def test_each_row_of_the_version_table_meets_its_witness() -> None:
    asked = {parameters.get("trial") for parameters in quick("mutation/test_witnesses.py")}
    assert {found.trace for found in ROWS.values() if found is not None} <= asked


def test_each_version_is_replayed_once() -> None:
    replayed = {parameters.get("judged") for parameters in quick("replay/test_real_traces.py")}
    assert {about(name)["gitVersion"] for name in ALL} == {
        about(name)["gitVersion"] for name in replayed if name in ALL
    }


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_is_run(verb: str) -> None:
    assert re.search(rf"\b{verb}\b", (TESTS / OF_VERBS[verb]).read_text())
    assert quick(OF_VERBS[verb])


def test_what_costs_more_than_it_may_fails_in_the_quick_tier_alone(
    request: pytest.FixtureRequest,
) -> None:
    may = tiers.QUICK_CPU_S
    assert tiers.too_dear(request.node, may) is None
    assert "`make test` may take" in (tiers.too_dear(request.node, may + 1) or "")
    request.node.add_marker(pytest.mark.full)
    assert tiers.too_dear(request.node, may + 1) is None
