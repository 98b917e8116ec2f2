"""The machinery itself, on a real control plane: what it records is what was written."""

import json
from pathlib import Path

import pytest

from tests.e2e import audit, generate

pytestmark = pytest.mark.e2e


def test_a_small_run_ends_as_its_scenarios_say_and_misses_no_revision(tmp_path: Path) -> None:
    out = tmp_path / "trace"
    scenarios = "fixed-completions,pod-killed,orphans"
    status = generate.main(["--scenarios", scenarios, "--minutes", "0.2", "-o", str(out)])
    about = json.loads((out / "about.json").read_text())
    assert about["errors"] == {}
    assert status == 0
    writes = audit.writes(out / "audit.jsonl.zst")
    assert writes["create pods"] > 30
    written = audit.written_revisions(out / "audit.jsonl.zst")
    assert len(written) > 200
    assert written <= audit.seen_revisions(out / "watch.jsonl.zst")
