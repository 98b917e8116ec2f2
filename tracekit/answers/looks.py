"""Whether anybody looked at a stream: an absence tells something only where somebody did."""

from __future__ import annotations

from tracekit.answers.trace_model import Facts


def looked_at(facts: Facts, stream: str) -> bool:
    """Whether the record has the stream, if only a list without an object.

    Of one object's own rows the coverage of all of the record tells it.
    """
    coverage = facts.coverage
    return bool(facts.streams.get(stream)) or not coverage.spans or coverage.has(stream)
