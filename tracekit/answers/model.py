"""A finding, the rule that decides it, and the single cases that it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from msgspec import Struct, field

from tracekit.answers.harm import NO_HARM, Harm, Loss
from tracekit.answers.words import of_several
from tracekit.base.kube.events import MAKERS, PDB


class Severity(Enum):
    """How bad it is: something that had to happen did not, harm was done, or good to know."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 is the worst."""
        return list(Severity).index(self)


class Family(Enum):
    """What a kind of finding is about, as the first digit of its id says."""

    DIVERGENCE = "TK1"
    HARM_BY_THE_RULES = "TK2"
    CRONJOB = "TK3"
    JOB = "TK4"
    RECORD = "TK9"


class Rule(Struct, frozen=True):
    """One kind of finding: docs/findings.md is made from these."""

    id: str
    title: str
    severity: Severity  # the usual one; a case may be milder
    decided: str  # how, and with which bounds
    false_alarms: str
    todo: str
    thread: int | None = None  # of kubernetes/kubernetes
    rank: int = 50  # among findings of one severity the lowest comes first
    losses: frozenset[Loss] = frozenset()  # of a Job

    @property
    def family(self) -> Family:
        """What it is about."""
        return family_of(self.id)


def family_of(rule_id: str) -> Family:
    """What the rule of an id is about."""
    return Family(rule_id[:3])


#: What is called by its kind where it has no namespace.
_KINDS = frozenset(("Job", "CronJob", "Pod", "Node", PDB, *MAKERS))


class Target(NamedTuple):
    """The object that a finding is about."""

    kind: str
    namespace: str
    name: str
    uid: str = ""

    def __str__(self) -> str:
        if self.namespace:
            return f"{self.kind} {self.namespace}/{self.name}"
        # Text that kubectl prints for people may leave the namespace out.
        return f"{self.kind} {self.name}" if self.kind in _KINDS else self.name


class Case(Struct, frozen=True):
    """One object in one kind of trouble; cases with the same rule and claim make one finding."""

    rule: Rule
    target: Target
    claim: str  # what a human would say after "Job shop/import:"
    from_ns: int
    until_ns: int
    detail: str  # the same with its own times and numbers
    cronjob: str | None = None  # the CronJob that owns the object
    severity: Severity | None = None
    thread: int | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    #: What to do in this very case, where the rule's own advice does not fit.
    todo: str | None = None
    #: Of which other finding it is a consequence: then that one's advice counts, or `todo`, what is
    #: to be done about it in this case.
    cause: Rule | None = None
    #: What it cost, and who did it: filled in for all cases (`findings.harms`) where None.
    harm: Harm | None = None
    actor: str | None = None

    @property
    def badness(self) -> Severity:
        """Its own severity, else its rule's."""
        return self.severity or self.rule.severity


class Finding(Struct, frozen=True):
    """Cases that have one cause, worded together."""

    rule: Rule
    severity: Severity
    thread: int | None
    subject: str
    claim: str
    cases: tuple[Case, ...]
    #: What follows from it, directly or not.
    victims: tuple[Finding, ...] = ()

    def __repr__(self) -> str:
        return f"<Finding {self.id} {self.severity.value}: {self.text}>"

    @property
    def id(self) -> str:
        """The rule's id, for example TK101."""
        return self.rule.id

    @property
    def text(self) -> str:
        """One sentence."""
        several = len(self.objects) > 1
        return f"{self.subject}: {of_several(self.claim) if several else self.claim}"

    @property
    def cause(self) -> Rule | None:
        """Of which other finding it is a consequence."""
        return self.cases[0].cause

    @property
    def objects(self) -> tuple[Target, ...]:
        """What it is about, each once."""
        return tuple(dict.fromkeys(case.target for case in self.cases))

    @property
    def harm(self) -> Harm:
        """What it cost, without what follows from it; a Job counts once."""
        total, seen = NO_HARM, set()
        for case in self.cases:
            key = (case.target, 0 if case.target.kind == "Job" else case.from_ns)
            if key not in seen:
                seen.add(key)
                total += case.harm or NO_HARM
        return total

    @property
    def harm_in_all(self) -> Harm:
        """What it cost with what follows from it."""
        return sum((victim.harm for victim in self.victims), self.harm)

    @property
    def from_ns(self) -> int:
        """When it began."""
        return min(case.from_ns for case in self.cases)

    @property
    def until_ns(self) -> int:
        """When it was last seen."""
        return max(case.until_ns for case in self.cases)
