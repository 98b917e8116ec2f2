"""A pod cache at any position is what the deltas up to there make of an empty one."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from tests.support.objects import raw_pod
from tracekit.base.kube.views import PodView, pod_from_raw
from tracekit.ports.cache.pods import PodCache


@dataclass
class Delta:
    type: str
    view: PodView
    previous: Delta | None = None


def _view(name: str, rv: int) -> PodView:
    raw = raw_pod(name)
    raw["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": str(rv)}
    return pod_from_raw(raw)


VIEWS = {(name, rv): _view(name, rv) for name in "abcd" for rv in range(30)}


@st.composite
def streams(draw: st.DrawFn) -> list[Delta]:
    """Deltas of a few pods; nothing follows a deletion."""
    stream: list[Delta] = []
    last: dict[str, Delta] = {}
    for rv in range(draw(st.integers(0, 29))):
        name = draw(st.sampled_from("abcd"))
        before = last.get(name)
        if before is not None and before.type == "DELETED":
            continue
        kinds = ["ADDED"] if before is None else ["MODIFIED", "MODIFIED", "DELETED"]
        delta = Delta(draw(st.sampled_from(kinds)), VIEWS[name, rv], before)
        last[name] = delta
        stream.append(delta)
    return stream


def _naive(stream: list[Delta], position: int) -> dict[str, PodView]:
    pods: dict[str, PodView] = {}
    for delta in stream[:position]:
        if delta.type == "DELETED":
            del pods[delta.view.uid]
        else:
            pods[delta.view.uid] = delta.view
    return pods


@given(streams(), st.lists(st.integers(0, 29), max_size=12))
def test_it_can_be_moved_along_its_stream_in_both_directions(
    stream: list[Delta], moves: list[int]
) -> None:
    cache = PodCache()
    for move in moves:
        position = min(move, len(stream))
        cache.move_to(stream, position)
        assert cache.position == position
        assert {pod.uid: pod for pod in cache.pods()} == _naive(stream, position)


def test_moving_a_copy_leaves_the_original_where_it_was() -> None:
    first = Delta("ADDED", VIEWS["a", 1])
    gone = Delta("DELETED", VIEWS["a", 2], first)
    cache = PodCache()
    cache.move_to([first, gone], 1)
    other = cache.copy()
    other.move_to([first, gone], 2)
    assert (cache.position, [pod.uid for pod in cache.pods()]) == (1, ["uid-a"])
    assert (other.position, other.pods()) == (2, [])


def test_going_back_over_a_deletion_brings_the_last_state_before_it() -> None:
    first = Delta("ADDED", VIEWS["a", 1])
    second = Delta("MODIFIED", VIEWS["a", 2], first)
    gone = Delta("DELETED", VIEWS["a", 3], second)
    cache = PodCache()
    cache.move_to([first, second, gone], 3)
    cache.move_to([first, second, gone], 2)
    assert cache.pods() == [second.view]
