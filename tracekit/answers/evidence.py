"""What an answer rests on, strongest first."""

from __future__ import annotations

from enum import Enum


class Evidence(Enum):
    """Where an answer is from; the first that tells anything counts."""

    AUDIT = "audit log"
    STATUS = "status and conditions"
    EVENT = "Event"
    RULES = "the controller's rules"

    @property
    def rank(self) -> int:
        """0 is the strongest."""
        return list(Evidence).index(self)
