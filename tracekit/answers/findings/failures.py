"""Which causes the failed Jobs of a record are put down to, each Job once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tracekit.answers.findings.job_failures import OTHERWISE, is_unexplained
from tracekit.answers.model import Finding, Rule
from tracekit.answers.words import counted, of_several

_UNKNOWN: Final = "for a reason that the record does not tell"


class Share(Struct, frozen=True):
    """How many failed Jobs are put down to one kind of cause, in words that follow the number."""

    rule: Rule
    jobs: int
    what: str  # in the words of the rule or the finding
    #: The findings about them, which differ in what the Jobs of each have in common.
    findings: tuple[Finding, ...]
    is_unknown: bool = False

    @property
    def why(self) -> str:
        """For example `as their pods are refused (TK405)`."""
        if self.is_unknown:
            return f"{_UNKNOWN} ({self.rule.id})"
        return f"as {of_several(self.what) if self.jobs > 1 else self.what} ({self.rule.id})"


def shares(findings: Sequence[Finding]) -> list[Share]:
    """The causes of failed Jobs, the largest first, what is not known last."""
    beneath = {id(victim) for finding in findings for victim in finding.victims}
    kinds = defaultdict[tuple[str, str, bool], list[Finding]](list)
    for finding in findings:
        if id(finding) in beneath or not finding.harm_in_all.failed_jobs:
            continue
        # Of what has no kind of its own the sentence tells.
        what = finding.claim if finding.rule is OTHERWISE else finding.rule.title
        unknown = finding.rule is OTHERWISE and is_unexplained(finding.cases[0])
        what = "" if unknown else what.removeprefix("failed: ")
        kinds[finding.id, what, unknown].append(finding)
    found = [
        Share(own[0].rule, sum(f.harm_in_all.failed_jobs for f in own), what, tuple(own), unknown)
        for (_, what, unknown), own in kinds.items()
    ]
    return sorted(found, key=lambda share: (share.is_unknown, -share.jobs, share.rule.id))


def failures_sentence(findings: Sequence[Finding]) -> str:
    """Why Jobs failed, all of them; empty where fewer than two did."""
    found = shares(findings)
    total = sum(share.jobs for share in found)
    if total < 2:  # noqa: PLR2004 - one is told by its own finding
        return ""
    return f"{counted(total, 'Job')} failed: " + ", ".join(f"{s.jobs:,} {s.why}" for s in found)
