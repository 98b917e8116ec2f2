"""Accepted findings and divergences: a list that a CI run is measured against.

An entry names the rule and the object; each part may be a shell pattern, and a part that is left
out fits everything. `reason` is for people.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from tracekit.answers.findings.divergences import rule_of
from tracekit.answers.model import Finding, Target
from tracekit.base.errors import UsageError
from tracekit.check.verdict import Judgement

SCHEMA_VERSION = 1
_PARTS = ("id", "kind", "namespace", "name")


@dataclass(slots=True)
class Baseline:
    """What is accepted; `used` grows with what it was found to fit."""

    entries: Sequence[Mapping[str, str]]
    used: set[int] = field(default_factory=set)

    def accepts(self, rule_id: str, target: Target) -> bool:
        """Whether a finding on an object is accepted."""
        values = (rule_id, target.kind, target.namespace, target.name)
        for place, entry in enumerate(self.entries):
            if all(
                fnmatchcase(value, entry.get(part, "*"))
                for part, value in zip(_PARTS, values, strict=True)
            ):
                self.used.add(place)
                return True
        return False

    def accepts_judgement(self, judgement: Judgement) -> bool:
        """Whether a divergence is accepted."""
        where = judgement.object
        target = Target(where.kind, where.namespace, where.name)
        return self.accepts(rule_of(judgement).id, target)

    @property
    def unused(self) -> list[Mapping[str, str]]:
        """Entries that nothing fitted."""
        return [entry for place, entry in enumerate(self.entries) if place not in self.used]


def baseline_from(document: Any, name: str) -> Baseline:
    """The baseline that a JSON document is.

    Raises:
        UsageError: Where it is none; `name` is the file's.
    """
    entries = document.get("accepted") if isinstance(document, dict) else None
    if not isinstance(entries, list) or document.get("schema_version") != SCHEMA_VERSION:
        raise UsageError(
            f"{name} is no baseline: `tracekit diagnose TRACE --write-baseline FILE` makes one"
        )
    for place, entry in enumerate(entries):
        known = isinstance(entry, dict) and all(isinstance(v, str) for v in entry.values())
        if not known or "id" not in entry or set(entry) - {*_PARTS, "reason"}:
            raise UsageError(
                f"{name}: accepted entry {place} needs an id, and may have kind, namespace, name "
                "(patterns) and reason, all of them text"
            )
    return Baseline(entries)


def baseline_document(findings: Iterable[Finding]) -> dict[str, Any]:
    """A baseline that accepts these findings; Jobs of a CronJob by the pattern of their names."""
    entries: dict[tuple[str, str, str, str], None] = {}
    for finding in findings:
        for case in finding.cases:
            name = f"{case.cronjob}-*" if case.cronjob else case.target.name
            entries[finding.id, case.target.kind, case.target.namespace, name] = None
    return {
        "schema_version": SCHEMA_VERSION,
        "accepted": [dict(zip(_PARTS, entry, strict=True)) for entry in entries],
    }
