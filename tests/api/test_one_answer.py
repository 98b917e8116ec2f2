"""What one verb says, all say: the findings of each Job in `explain` are those of `diagnose`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.traces import TRACES, import_log
from tracekit.api.trace import Trace
from tracekit.cli.import_ import import_

#: Decided from all Jobs together: who was behind, who lost most, whether several are alike.
OF_ALL = ("TK207", "TK421", "TK434")


def own(claim: str) -> str:
    """What is said of the Job without what its controller had to do for others meanwhile."""
    before, late, _ = claim.partition("overran its deadline: ")
    return late or before.replace("its controller was behind (TK207)", NO_POD)


NO_POD = "the controller has not created a pod"


@pytest.mark.parametrize("name", ["v1.36.3-troubles", "v1.27.4-churn606"])
def test_explain_says_of_each_job_what_diagnose_says(name: str, tmp_path: Path) -> None:
    path = import_log(TRACES / name / "watch.jsonl.zst", tmp_path / "trace", name).path
    trace = Trace(path)
    wanted: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for finding in trace.diagnose():
        for case in finding.cases:
            if case.target.kind == "Job" and not finding.id.startswith((*OF_ALL, "TK1")):
                key = (case.target.namespace, case.target.name)
                wanted.setdefault(key, set()).add((finding.id, own(case.claim)))
    assert len(wanted) >= 20
    for (namespace, job), claims in list(wanted.items())[::3]:
        told = trace.explain(job, namespace=namespace).findings
        said = {
            (f["id"], own(f["text"].partition(": ")[2]))
            for f in told
            if not f["id"].startswith(OF_ALL)
        }
        assert said == claims


def test_explain_names_who_asked_where_an_audit_log_does(tmp_path: Path) -> None:
    logs = [str(TRACES / "v1.36.3-troubles" / f"{log}.jsonl.zst") for log in ("watch", "audit")]
    out = str(tmp_path / "trace")
    words = [*logs, "-o", out, "--processes", "1"]
    assert CliRunner().invoke(import_, words, catch_exceptions=False).exit_code == 0
    text = Trace(out).explain("collected", namespace="t-troubles").text()
    assert "Job was created, by admin" in text
    assert "Job is gone, by alice" in text
    assert "generic-garbage-collector" in text
    assert "somebody" not in text
