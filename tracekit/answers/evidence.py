"""What an answer rests on, strongest first."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class Evidence(Enum):
    """Where an answer is from; the first that tells anything counts."""

    AUDIT = "audit log"
    MANAGED_FIELDS = "managedFields"
    STATUS = "status and conditions"
    EVENT = "Event"
    RULES = "the controller's rules"

    @property
    def rank(self) -> int:
        """0 is the strongest."""
        return list(Evidence).index(self)


class Suspension(Struct, frozen=True):
    """Who set spec.suspend of what is suspended, when (Unix ns), and from what that is known."""

    who: str
    at_ns: int | None
    evidence: Evidence


class Preemptor(Struct, frozen=True):
    """A pod that another gave way to, which an Event names by its uid, and whose pod it is."""

    namespace: str
    pod: str
    owner_kind: str | None = None
    owner: str | None = None
