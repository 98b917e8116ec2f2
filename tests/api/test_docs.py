"""The examples of docs/api.md run, in order, on the trace that they name."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.traces import ROOT

DOC = ROOT / "docs" / "api.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_api_run(trace_path, tmp_path: Path, monkeypatch, capsys) -> None:
    (tmp_path / "run.trace").symlink_to(trace_path("v1.36.3-all"))
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(DOC.read_text())
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(DOC), "exec"), names)  # noqa: S102
    assert len(blocks) >= 9
    printed = capsys.readouterr().out
    assert "BackoffLimitExceeded" in printed
    assert "did you mean t-backoff-limit/recovers" in printed
