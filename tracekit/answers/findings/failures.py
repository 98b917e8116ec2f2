"""Which causes the failed Jobs of a record are put down to, each Job once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tracekit.answers.findings.job_failures import OTHERWISE
from tracekit.answers.model import Finding, Rule
from tracekit.answers.words import counted, of_several

_UNKNOWN: Final = "for a reason that the record does not tell"


class Share(Struct, frozen=True):
    """How many failed Jobs are put down to one kind of cause, in words that follow the number."""

    rule: Rule
    jobs: int

    @property
    def is_unknown(self) -> bool:
        """Whether the record does not tell the cause."""
        return self.rule is OTHERWISE

    @property
    def why(self) -> str:
        """For example `as their pods are refused (TK405)`."""
        if self.is_unknown:
            return f"{_UNKNOWN} ({self.rule.id})"
        title = self.rule.title.removeprefix("failed: ")
        return f"as {of_several(title) if self.jobs > 1 else title} ({self.rule.id})"


def shares(findings: Sequence[Finding]) -> list[Share]:
    """The causes of failed Jobs, the largest first, what is not known last."""
    beneath = {id(victim) for finding in findings for victim in finding.victims}
    jobs: dict[str, int] = {}
    rules: dict[str, Rule] = {}
    for finding in findings:
        number = finding.harm_in_all.failed_jobs
        if id(finding) not in beneath and number:
            rules[finding.id] = finding.rule
            jobs[finding.id] = jobs.get(finding.id, 0) + number
    found = [Share(rules[name], number) for name, number in jobs.items()]
    return sorted(found, key=lambda share: (share.is_unknown, -share.jobs, share.rule.id))


def failures_sentence(findings: Sequence[Finding]) -> str:
    """Why Jobs failed, all of them; empty where fewer than two did."""
    found = shares(findings)
    total = sum(share.jobs for share in found)
    if total < 2:  # noqa: PLR2004 - one is told by its own finding
        return ""
    return f"{counted(total, 'Job')} failed: " + ", ".join(f"{s.jobs:,} {s.why}" for s in found)
