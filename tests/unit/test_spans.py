"""Spans near a time: none that touches it is missed, in whatever order they are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.operations import growth
from tracekit.base.spans import Spans

_TIMES = st.integers(0, 30)
_SPANS = st.lists(st.tuples(_TIMES, _TIMES).map(lambda pair: (min(pair), max(pair))), max_size=12)


@given(_SPANS, _TIMES, _TIMES)
def test_every_span_that_touches_a_time_is_near_it(
    spans: list[tuple[int, int]], one: int, other: int
) -> None:
    from_ns, until_ns = min(one, other), max(one, other)
    near = Spans(spans).near(from_ns, until_ns)
    touching = [i for i, (a, b) in enumerate(spans) if a <= until_ns and b >= from_ns]
    assert set(touching) <= set(near)
    last = max((i for i, (a, _) in enumerate(spans) if a < one), default=-1)
    assert Spans(spans).last_before(one) == last


def test_of_spans_in_order_few_are_looked_at() -> None:
    def asked(count: int):
        spans = Spans((at * 10, at * 10 + 5) for at in range(count))
        return lambda: [len(spans.near(at * 10, at * 10 + 3)) for at in range(count)]

    assert growth(asked, 50) < 1.3
    assert set(asked(200)()) == {1}
