"""Choices out of a seed: the same seed makes the same run, on any machine."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final, TypeVar

from msgspec import Struct

T = TypeVar("T")
_MS: Final = 1_000_000
#: What the API server's name generator uses: no vowels, nothing that looks like another.
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
Span = tuple[int, int]
#: The part of a request that its answer takes where nothing else is known.
_ANSWER_PART: Final = 4


class Timing(Struct, frozen=True):
    """The least and the most of each delay, in nanoseconds; drawn evenly in between."""

    latency: Span = (2 * _MS, 12 * _MS)
    watch_lag: Span = (1 * _MS, 20 * _MS)
    handler_lag: Span = (0, 2 * _MS)
    collection: Span = (5 * _MS, 120 * _MS)
    record_lag: Span = (1 * _MS, 15 * _MS)
    sync: Span = (100_000, 1 * _MS)
    #: From when a key is ready until a worker that slept takes it: one of these.
    turns: tuple[int, ...] = ()
    #: From a commit to its answer; None: a quarter of the request.
    answer: Span | None = None
    #: Whether kubelets learn of deletions as late as informers do; else at once.
    late_kubelets: bool = False


def _drawn(source: random.Random, span: Span) -> int:
    """What `randint` draws, without what it asks on the way there: a run draws millions of them."""
    least, most = span
    width = most - least + 1
    bits = width.bit_length()
    drawn = source.getrandbits(bits)
    while drawn >= width:
        drawn = source.getrandbits(bits)
    return least + drawn


class SeededDraws:
    """`cluster.draws.Draws` out of one seed."""

    def __init__(self, seed: int, timing: Timing | None = None) -> None:
        # Streams of their own, so that one more request does not rename every later pod.
        self._delays = random.Random(f"delays {seed}")  # noqa: S311 - nothing secret
        self._names = random.Random(f"names {seed}")  # noqa: S311
        self._orders = random.Random(f"orders {seed}")  # noqa: S311
        self._kubelets = random.Random(f"kubelets {seed}")  # noqa: S311
        self._picks = random.Random(f"picks {seed}")  # noqa: S311
        self._turns = random.Random(f"turns {seed}")  # noqa: S311
        self._records = random.Random(f"records {seed}")  # noqa: S311
        self._timing = timing or Timing()

    def latency_ns(self) -> int:
        """How long a request takes."""
        return _drawn(self._delays, self._timing.latency)

    def answer_ns(self, latency_ns: int) -> int:
        """From a commit to the answer; no longer than the whole request."""
        answer = self._timing.answer
        if answer is None:
            return latency_ns // _ANSWER_PART
        return min(latency_ns, _drawn(self._delays, answer))

    def watch_lag_ns(self, kind: str) -> int:
        """From a commit to the informer."""
        del kind
        return _drawn(self._delays, self._timing.watch_lag)

    def handler_lag_ns(self) -> int:
        """From the informer's cache to its handlers."""
        return _drawn(self._delays, self._timing.handler_lag)

    def kubelet_lag_ns(self) -> int:
        """The news takes as long as to an informer; what was under way still takes effect."""
        if not self._timing.late_kubelets:
            return 0
        return _drawn(self._kubelets, self._timing.watch_lag) + _drawn(
            self._kubelets, self._timing.latency
        )

    def collection_ns(self) -> int:
        """The garbage collector's delay."""
        return _drawn(self._delays, self._timing.collection)

    def record_lag_ns(self, kind: str) -> int:
        """From a commit to the recorder."""
        del kind
        return _drawn(self._records, self._timing.record_lag)

    def turn_ns(self) -> int:
        """What a busy machine takes until a worker runs."""
        turns = self._timing.turns
        return turns[_drawn(self._turns, (0, len(turns) - 1))] if turns else 0

    def sync_ns(self) -> int:
        """What a sync computes."""
        return _drawn(self._delays, self._timing.sync)

    def suffix(self) -> str:
        """Five characters of the API server's alphabet."""
        return "".join(self._names.choices(_ALPHABET, k=5))

    def uid(self) -> str:
        """A random uid in the usual form."""
        text = f"{self._names.getrandbits(128):032x}"
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"

    def pick(self, count: int) -> int:
        """A place below the count."""
        return _drawn(self._picks, (0, count - 1))

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in any order."""
        mixed = list(items)
        self._orders.shuffle(mixed)
        return mixed
