"""Lists that have no end, and answers that are no lists: a pause, and a sentence for a reason."""

from __future__ import annotations

import io
import random
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from rich.console import Console

from tests.record.harness import SPECS, ListSink
from tracekit.cli import record as cli
from tracekit.record.credentials.withheld import Credentials
from tracekit.record.failures import BadFrame, RequestFailed, failure
from tracekit.record.operation.recorder import Ending, Outcome
from tracekit.record.server.backoff import Backoff
from tracekit.record.streams import pages
from tracekit.record.streams.pages import Item, Turning, page_of
from tracekit.record.streams.sink import GapRow
from tracekit.record.streams.status import StreamStatus
from tracekit.record.streams.watcher import Watcher, WatchPolicy

OBJECT = {"metadata": {"uid": "u", "resourceVersion": "7", "name": "a"}}


def page(token: str, *items: Any) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": "9", "continue": token}, "items": list(items)}


def test_a_list_as_a_server_answers_it() -> None:
    assert page_of(page("x", OBJECT)).items == [Item("u", "7", orjson.dumps(OBJECT))]
    assert page_of({"metadata": {}, "items": None}) == pages.Page("", "", [])


NONE: list[Any] = [
    {}, {"metadata": None, "items": []}, {"metadata": 5, "items": []}, {"metadata": {}, "items": {}},
    {"metadata": {}, "items": "x"}, page("", None), page("", 5), page("", []), page("", {}),
    page("", {"metadata": None}), page("", {"metadata": {"uid": "u"}}),
    page("", {"metadata": {"uid": ["u"], "resourceVersion": "1"}}),
    {"metadata": {"resourceVersion": 5}, "items": []}, {"metadata": {"continue": 5}, "items": []},
]  # fmt: skip


@pytest.mark.parametrize("answer", NONE, ids=repr)
def test_what_is_no_list_is_said_to_be_none(answer: Any) -> None:
    with pytest.raises(
        BadFrame, match=r"^(the answer is no list|an item of the list is no object)"
    ):
        page_of(answer)


def test_a_list_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "PAGES_MAX", 5)
    turning = Turning()
    for number in range(5):
        assert turning.after(page_of(page(str(number), OBJECT))) == str(number)
    with pytest.raises(RequestFailed, match="more than 5 pages"):
        turning.after(page_of(page("5", OBJECT)))


def endless(kind: str) -> Iterator[dict[str, Any]]:
    for number in count():
        yield page("abc" if kind == "same" else str(number), *[OBJECT] * (kind == "same"))


@pytest.mark.parametrize(
    ("kind", "requests", "reason"),
    [("same", 2, "sends a continue token again"), ("empty", 100, "100 pages had no object")],
)
def test_a_server_that_never_ends_a_list_is_given_pauses(
    kind: str, requests: int, reason: str
) -> None:
    """It was asked on and on, without a pause: some ten thousand requests a second."""
    stop = threading.Event()
    asked: list[int] = []
    answers = {"now": endless(kind)}
    got = 0

    def get(*_: object) -> dict[str, Any]:
        nonlocal got
        got += 1
        return next(answers["now"])

    class Pauses(Backoff):
        def next_delay_s(self, at_least_s: float | None = None) -> float:
            assert super().next_delay_s(at_least_s) > 0
            asked.append(got)
            answers["now"] = endless(kind)
            if len(asked) == 3:
                stop.set()
            return 0.0

    connection = SimpleNamespace(generation=1, credentials=Credentials())
    client: Any = SimpleNamespace(connection=connection, get=get)
    watcher = Watcher(
        SPECS["jobs"], client, ListSink(), policy=WatchPolicy(backoff=Pauses), stop=stop
    )
    watcher.run()
    assert asked == [requests, 2 * requests, 3 * requests]
    assert reason in (watcher.status.last_failure or "")


@pytest.mark.parametrize("began", ["anew", "after a 410"])
def test_a_list_that_is_under_way_at_the_end_is_not_recorded_and_that_is_said(began: str) -> None:
    """A gap stood in the trace, and the last sentence and the exit status knew nothing of it."""
    stop = threading.Event()
    numbers = count()

    def get(*_: object) -> dict[str, Any]:
        number = next(numbers)
        if began == "after a 410" and number == 0:
            raise failure(410, "too old resource version")
        if number == 5:
            stop.set()
        return page(str(number), OBJECT)

    connection = SimpleNamespace(generation=1, credentials=Credentials())
    client: Any = SimpleNamespace(connection=connection, get=get)
    sink = ListSink()
    policy = WatchPolicy(backoff=lambda: Backoff(first_s=0.001, most_s=0.001))
    watcher = Watcher(SPECS["jobs"], client, sink, policy=policy, stop=stop)
    watcher.run()
    gone = "the list took too long: too old resource version"
    why = {"anew": "its first list had not ended", "after a 410": gone}[began]
    assert watcher.status.unseen_at_end == why
    (gap,) = (row for row in sink.items if isinstance(row, GapRow))
    began_as = "not listed at the end: " if began == "anew" else "its first list failed: "
    assert gap.reason == began_as + why
    said = io.StringIO()
    outcome = Outcome(Ending.DURATION, [watcher.status, StreamStatus("pods")], 1, Path("t"), 1)
    assert cli._report(outcome, Console(file=said, width=200)) == 1
    assert said.getvalue().splitlines()[1:] == [
        f"tracekit: jobs was not being recorded at the end: {why}"
    ]


@pytest.mark.parametrize("seconds", [0.0, 0.1, None])
def test_a_server_that_asks_for_no_pause_gets_one(seconds: float | None) -> None:
    backoff = Backoff(first_s=1, most_s=8, jitter=0, rng=random.Random(1))
    assert [backoff.next_delay_s(seconds) for _ in range(5)] == [1, 2, 4, 8, 8]
