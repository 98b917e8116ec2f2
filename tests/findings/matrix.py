"""Which findings the shipped traces show: `python -m tests.findings.matrix` writes it anew.

It takes minutes, so it is kept; docs/findings.md prints it, and test_matrix.py holds it to the code.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.findings.conftest import Traces
from tests.support.traces import ALL, ROOT, TRACES
from tracekit.answers.model import Finding

KEPT = ROOT / "tests" / "findings" / "matrix.json"
INCIDENTS = tuple(sorted(f"incidents/{path.name}" for path in (TRACES / "incidents").iterdir()))
NAMES = (*ALL, *INCIDENTS)


def counts(findings: Iterable[Finding]) -> dict[str, int]:
    """How many objects each kind of finding is about."""
    found: Counter[str] = Counter()
    for finding in findings:
        found[finding.id] += len(finding.objects)
    return dict(sorted(found.items()))


def kept() -> dict[str, dict[str, int]]:
    """By trace: the ids of its findings, and how many objects each is about."""
    found: dict[str, dict[str, int]] = json.loads(KEPT.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        traces = Traces(Path(folder), {})
        matrix = {}
        for name in NAMES:
            matrix[name] = counts(traces.findings(name))
            sys.stdout.write(f"{name}: {matrix[name]}\n")
            sys.stdout.flush()
    KEPT.write_text(json.dumps(matrix, indent=1) + "\n", encoding="utf-8")
