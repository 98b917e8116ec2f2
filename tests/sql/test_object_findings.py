"""What `explain` says of one object among others that have the same trouble."""

from __future__ import annotations

from tracekit.answers.findings.cronjobs import NOT_STARTED
from tracekit.answers.model import Case, Finding, Severity, Target
from tracekit.sql.object_findings import finding_lines


def test_advice_names_the_object_and_the_trace() -> None:
    """Not the first object of the finding, nor one of another kind that has the same name."""
    targets = [
        Target("CronJob", "shop", "hourly", "a"),
        Target("Job", "shop", "nightly", "b"),
        Target("CronJob", "other", "nightly", "c"),
        Target("CronJob", "shop", "nightly", "d"),
    ]
    todo = "`tracekit explain TRACE {object}` tells; kubectl get cronjob NAME"
    cases = tuple(
        Case(NOT_STARTED, target, "missed a run", 0, 1, f"detail of {target.uid}", todo=todo)
        for target in targets
    )
    finding = Finding(NOT_STARTED, Severity.WARNING, None, "4 objects", "missed a run", cases)
    told = finding_lines([finding], "CronJob", "shop", "nightly", "my run")[1:]
    do = "`tracekit explain 'my run' shop/nightly` tells; kubectl get cronjob -n shop nightly"
    assert told == [("detail of d", False), (f"do: {do}", False)]
