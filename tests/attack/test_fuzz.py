"""Records with anything in the place of anything: every verb answers or says in one sentence why not.

docs/trust.md: "A fault of tracekit's own is exit status 2 and one sentence, never 1".
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.attack.answers import run
from tests.support.traces import TRACES, json_lines

NAME = "v1.36.3-twins"
NAMESPACES = 2
EDGES = (
    0, 1, -1, 2**31 - 1, 2**31, -(2**31) - 1, 2**53, 2**63 - 1, 2**63, -(2**63), 10**30, 0.5, 1e300,
    float("nan"), float("inf"), True, False, None, "", "x", "\x00", "\ud800", "9" * 400, [], {},
    [None], {"a": None}, "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2262-04-11T23:47:17Z",
    "2024-02-30T00:00:00Z", "-1", "* * * * *", "@every 1ns", "TZ=UTC 0 0 30 2 *",
)  # fmt: skip
JOB = "t-none/none"
VERBS = (
    ("info",), ("replay", "--diff"), ("diagnose",), ("jobs",), ("jobs", "-o", "json"),
    ("explain", "JOB"), ("report", "-o", "OUT"), ("export", "--format", "otlp"),
    ("export", "--format", "chrome"), ("export", "--format", "csv"), ("export", "--format", "jsonl"),
    ("sql", "FROM jobs"), ("sql", "FROM cron_ticks"), ("sql", "FROM attempts", "-o", "json"),
    ("watch", "--once"), ("compact",), ("redact", "-o", "COPY"), ("diagnose", "-o", "sarif"),
    ("export", "--format", "perfetto", "-o", "OUT"), ("sql", "FROM verdicts", "-o", "csv"),
    ("whatif", "--to", "v1.37.1"), ("who",), ("who", "job-controller"), ("timeline",),
    ("compare", "JOB", "JOB"),
)  # fmt: skip


def rows() -> list[dict[str, Any]]:
    """Some Jobs of a real record with what belongs to them."""
    all_rows = list(json_lines(TRACES / NAME / "watch.jsonl.zst"))
    named = [row["object"].get("metadata", {}).get("namespace") for row in all_rows]
    kept = set(list(dict.fromkeys(name for name in named if name))[:NAMESPACES])
    return [row for row, name in zip(all_rows, named, strict=True) if name is None or name in kept]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a document, as its holder and its key there."""
    if not isinstance(value, dict | list):
        return
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items):
        yield value, key
        yield from places(item)


def mutated(draw: random.Random) -> bytes:
    """The record with some places of it changed, as the lines of a watch log."""
    changed = json.loads(json.dumps(rows()))
    for _ in range(draw.randint(1, 8)):
        row = draw.choice(changed)
        everywhere = draw.random() < 0.5
        spots = list(places(row["object"] if draw.random() < 0.9 else row))
        if not spots:
            continue
        holder, key = draw.choice(spots)
        edge = draw.choice(EDGES)
        holder[key] = edge
        if everywhere and isinstance(key, str):  # in each object of its kind
            for other in changed:
                if other["resource"] == row["resource"]:
                    for place, name in places(other["object"]):
                        if name == key:
                            place[name] = edge
    lines = [json.dumps(row).encode() for row in changed]
    if draw.random() < 0.2:
        draw.shuffle(lines)
    if draw.random() < 0.2:
        lines[draw.randrange(len(lines))] = bytes(draw.randrange(256) for _ in range(40))
    return b"\n".join(lines) + b"\n"


def check(seed: int, folder: Path, verbs: int) -> None:
    draw = random.Random(seed)
    log = folder / "watch.jsonl"
    log.write_bytes(mutated(draw))
    trace = folder / "trace"
    code, _, said = run("import", "watch", str(log), "-o", str(trace))
    assert_no_fault(seed, ("import",), code, said)
    if not trace.exists():
        return
    names = [
        f"{row['object']['metadata'].get('namespace')}/{row['object']['metadata'].get('name')}"
        for row in rows()
        if row["resource"] == "jobs" and "metadata" in row["object"] and row["type"] == "ADDED"
    ]
    for verb, *words in draw.sample(VERBS, verbs):
        put = {"JOB": draw.choice(names), "OUT": str(folder / "out"), "COPY": str(folder / "copy")}
        code, _, said = run(verb, str(trace), *(put.get(word, word) for word in words))
        assert_no_fault(seed, (verb, *words), code, said)
        shutil.rmtree(folder / "copy", ignore_errors=True)


def assert_no_fault(seed: int, words: tuple[str, ...], code: int, said: str) -> None:
    assert "fault of tracekit" not in said, (seed, words, said)
    assert "Traceback" not in said, (seed, words, said)
    assert code in (0, 1, 2), (seed, words, said)


@pytest.mark.parametrize("seed", range(6))
def test_some_records(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path, 4)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 400))
def test_many_records(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path, len(VERBS))
