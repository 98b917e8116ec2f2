"""TK458: Jobs of which a table shows that their end is decided, and what it waits for."""

from __future__ import annotations

from typing import Final, NamedTuple

from tracekit.answers.model import Rule, Severity

ENDING = Rule(
    "TK458", "a Job that was shown as ending", Severity.INFO,
    "A table of kubectl get has SuccessCriteriaMet or Terminating as its STATUS, where it was "
    "shown last.",
    "An end that came a moment later.",
    "`kubectl get job NAME -o yaml` has its conditions, deletionTimestamp and finalizers, "
    "`kubectl get pods -l job-name=NAME` the pods that are left.",
    rank=64,
)  # fmt: skip


class _Ending(NamedTuple):
    claim: str
    waits: str


#: By what kubectl prints, 1.31 and later (upstream: pkg/printers/internalversion/printers.go).
ENDINGS: Final = {
    "SuccessCriteriaMet": _Ending(
        "was shown as a success that is not Complete yet",
        "its Job controller deletes the pods that are left, and sets Complete when none of them "
        "terminates any more",
    ),
    "Terminating": _Ending(
        "was shown as being deleted",
        "it is there until its finalizers are removed: foregroundDeletion by the garbage collector "
        "when its pods are gone, others by who set them",
    ),
}
