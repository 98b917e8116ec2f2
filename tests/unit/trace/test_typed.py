"""Objects that are read as the API promises them have the columns that `extract` gives them."""

from __future__ import annotations

import json
import random
from typing import Any

import orjson
import pytest

from tests.support.junk import JUNK, places, with_part
from tests.support.traces import TRACES, json_lines
from tracekit.trace.format.extract import extract
from tracekit.trace.format.model import STATE_TYPES, RowType
from tracekit.trace.format.rows import column_of
from tracekit.trace.format.schema import NAMES
from tracekit.trace.format.typed import columns_of, decoded

NUMBERS = (2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 1.0, 1e300)
TEXTS = ("é", "\x7f", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "٣", "1" * 30, "-3")


def states(name: str) -> list[tuple[str, dict[str, Any]]]:
    return [
        (line["resource"], line["object"])
        for line in json_lines(TRACES / name / "watch.jsonl.zst")
        if line["type"] in STATE_TYPES
    ]


def extracted(stream: str, objects: list[Any]) -> dict[str, list[Any]]:
    rows: list[dict[str, Any]] = []
    for obj in objects:
        row: dict[str, Any] = {}
        extract(stream, RowType.MODIFIED, obj, row)
        rows.append(row)
    return {name: [row.get(name) for row in rows] for name in NAMES}


def differing(stream: str, objects: list[Any], found: list[Any]) -> list[str]:
    """The columns in which both ways to read some objects differ."""
    wanted, columns = extracted(stream, objects), columns_of(stream, found)
    assert columns.keys() <= wanted.keys()
    return [
        name
        for name, values in wanted.items()
        if column_of(name, values, len(objects)).to_pylist()
        != column_of(name, columns.get(name), len(objects)).to_pylist()
    ]


@pytest.mark.parametrize("name", ["v1.14.10-all", "v1.23.17-all", "v1.36.3-restart", "v1.37.1-all"])
def test_every_object_of_a_real_server_is_as_promised(name: str) -> None:
    by_stream: dict[str, list[Any]] = {}
    for stream, obj in states(name):
        by_stream.setdefault(stream, []).append(obj)
    for stream, objects in by_stream.items():
        found = [decoded(stream, orjson.dumps(obj)) for obj in objects]
        assert None not in found
        assert differing(stream, objects, found) == []


def test_whatever_else_arrives_is_read_the_same_or_left_to_extract() -> None:
    rng = random.Random("typed")
    real = states("v1.36.3-all") + states("v1.17.17-all")
    taken: dict[str, list[tuple[Any, Any]]] = {}
    left = 0
    for _ in range(1500):
        stream, obj = rng.choice(real)
        stream = rng.choice((stream, stream, stream, "logs", "widgets"))
        for _ in range(rng.choice((1, 1, 2))):
            place = rng.choice(list(places(obj)))
            if rng.random() < 0.2:
                place = (*place[:-1], rng.choice(("name", "status", "metadata", "count", "new")))
            try:
                obj = with_part(obj, place, rng.choice((*JUNK, *NUMBERS, *TEXTS)))
            except TypeError:  # a name in a list
                continue
        raw = json.dumps(obj, ensure_ascii=rng.random() < 0.5).encode()
        try:
            arrived = orjson.loads(raw)
        except orjson.JSONDecodeError:
            continue
        found = decoded(stream, raw)
        assert (found is None) == (decoded(stream, raw.decode()) is None)
        if found is None:
            left += 1
        else:
            taken.setdefault(stream, []).append((arrived, found))
    for stream, pairs in taken.items():
        assert differing(stream, [obj for obj, _ in pairs], [found for _, found in pairs]) == []
    assert left > 150
    assert sum(map(len, taken.values())) > 150


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{}",
        b'{"metadata":null}',
        b'{"metadata":{"name":"\xff"}}',
        b'{"metadata":{"managedFields":[{"fieldsV1":{"f:\xff":{}}}]}}',
        b'{"metadata":{"other":"\\ud800"}}',
        b'{"metadata":{"other":"\x01"}}',
        b'{"metadata":{"other":01}}',
        b'{"metadata":{},"spec":{"a":1e999}}',
        b'{"metadata":{}}x',
        b'{"metadata":{}',
        b'{"metadata":{},"a":' + b"[" * 5000 + b"]" * 5000 + b"}",
    ],
)
def test_what_is_no_object_of_a_server_is_left_to_extract(raw: bytes) -> None:
    assert decoded("jobs", raw) is None


def test_a_field_that_stands_twice_has_its_last_value() -> None:
    raw = b'{"metadata":{"name":"a","uid":"u","name":"b"},"spec":{"x":1},"spec":{"x":2}}'
    found = decoded("jobs", raw)
    assert found is not None
    assert differing("jobs", [orjson.loads(raw)], [found]) == []
