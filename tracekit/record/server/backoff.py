"""How long to wait before trying again: exponential, capped, with full upward jitter.

The shape of client-go's reflector (0.8 s doubling to 30 s, jitter factor 1, so that a thousand
clients of a restarted server do not come back in one wave).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

_GROWTH = 2.0


@dataclass(slots=True)
class Backoff:
    """Delays of one stream; `reset` once the server answers properly again."""

    first_s: float = 0.8
    most_s: float = 30.0
    jitter: float = 1.0
    #: Seeded by tests only.
    rng: random.Random = field(default_factory=random.Random)
    _base_s: float = 0.0

    def next_delay_s(self, at_least_s: float | None = None) -> float:
        """Give the next delay, never less than what the server asked for.

        One that asks for less than the first pause has not thought of it (`Retry-After: 0`).
        """
        self._base_s = min(self._base_s * _GROWTH or self.first_s, self.most_s)
        delay_s = self._base_s * (1 + self.jitter * self.rng.random())
        if at_least_s is None or at_least_s < self.first_s:
            return delay_s
        return max(at_least_s * (1 + 0.1 * self.rng.random()), min(delay_s, at_least_s * 2))

    @property
    def is_raised(self) -> bool:
        """True after a failure that nothing has cleared yet."""
        return self._base_s > 0

    def reset(self) -> None:
        """Start from the first delay again."""
        self._base_s = 0.0
