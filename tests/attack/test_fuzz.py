"""Records with anything in the place of anything: every verb answers or says in one sentence why not.

docs/trust.md: "A fault of tracekit's own is exit status 2 and one sentence, never 1".
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.attack.answers import run
from tests.support.traces import TRACES, json_lines

NAME = "v1.36.3-restart"
NAMESPACES = 2
#: Numbers at all edges, then what is no number, and times and schedules that are few people's.
NUMBERS: list[Any] = [
    sign * number + more
    for number in (0, 1, 2**31, 2**32, 2**53, 2**62, 2**63, 10**30)
    for sign in (1, -1)
    for more in (-1, 0, 1)
] + [0.5, 1e300, -1e300, float("nan"), float("inf"), float("-inf")]
OTHERS: list[Any] = [
    True, False, None, "", "x", "\x00", "\ud800", "9" * 400, [], {}, [None], {"a": None}, [[]],
    "0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59Z", "2024-02-30T00:00:00Z",
    "2262-04-11T23:47:16Z", "2262-04-11T23:47:17Z", "2116-02-20T23:53:39Z", "1677-09-21T00:12:43Z",
    "-1", "* * * * *", "@every 1ns", "TZ=UTC 0 0 30 2 *", "*/0 * * * *", "3h", "1e9", "100%",
    "18446744073709551615", "9223372036854775807", "-9223372036854775808",
]  # fmt: skip
EDGES = st.sampled_from(NUMBERS) | st.sampled_from(OTHERS)
VERBS = (
    ("info",), ("info", "-o", "json"), ("replay", "--diff"), ("replay", "-o", "wide"),
    ("replay", "--diff", "-o", "json"), ("diagnose",), ("diagnose", "-o", "sarif"),
    ("diagnose", "-o", "junit"), ("diagnose", "-o", "json"), ("diagnose", "-o", "markdown"),
    ("jobs",), ("jobs", "-o", "json"), ("jobs", "-o", "wide"), ("explain", "JOB"),
    ("explain", "JOB", "-o", "json"), ("explain", "CRONJOB"),
    ("report", "-o", "OUT"), ("export", "--format", "otlp"), ("export", "--format", "chrome"),
    ("export", "--format", "csv"), ("export", "--format", "jsonl"),
    ("export", "--format", "perfetto", "-o", "OUT"), ("sql", "FROM jobs"),
    ("sql", "FROM cron_ticks"), ("sql", "FROM attempts", "-o", "json"), ("sql", "FROM node_pods"),
    ("sql", "FROM verdicts", "-o", "csv"), ("sql", "FROM observations", "-o", "markdown"),
    ("watch", "--once"), ("compact",), ("redact", "-o", "OUT"), ("cron lint",),
    ("who",), ("who", "job-controller"), ("timeline",), ("compare", "JOB", "JOB"),
    ("whatif", "--kubernetes-version", "v1.37.1"), ("whatif", "--set", "spec.backoffLimit=0"),
    ("minimise", "-o", "OUT", "--attempts", "3"),
)  # fmt: skip


@cache
def text() -> str:
    """Some Jobs of a real record with what belongs to them."""
    all_rows = list(json_lines(TRACES / NAME / "watch.jsonl.zst"))
    named = [row["object"].get("metadata", {}).get("namespace") for row in all_rows]
    of_cronjobs = (
        name for name, row in zip(named, all_rows, strict=True) if row["resource"] == "cronjobs"
    )
    kept = {*list(dict.fromkeys(name for name in named if name))[:NAMESPACES], *of_cronjobs}
    pairs = zip(all_rows, named, strict=True)
    return json.dumps([row for row, name in pairs if name is None or name in kept])


@cache
def keys(resource: str) -> list[str]:
    """The objects of a kind, as NAMESPACE/NAME."""
    return sorted({
        f"{row['object']['metadata']['namespace']}/{row['object']['metadata']['name']}"
        for row in json.loads(text())
        if row["resource"] == resource and row["object"].get("metadata", {}).get("name")
    })  # fmt: skip


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a document, as its holder and its key there."""
    if not isinstance(value, dict | list):
        return
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items):
        yield value, key
        yield from places(item)


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """The record with some places of it changed, as the lines of a watch log."""
    rows = json.loads(text())
    for _ in range(draw(st.integers(1, 8))):
        row = draw(st.sampled_from(rows))
        inside = draw(st.integers(0, 9)) > 0
        spots = list(places(row["object"] if inside else row))
        if not spots:
            continue
        holder, key = spots[draw(st.integers(0, len(spots) - 1))]
        edge = deepcopy(draw(EDGES))  # what is changed later is this one
        holder[key] = edge
        if draw(st.booleans()) and isinstance(key, str):  # in each object of its kind
            for other in rows:
                if other.get("resource") == row.get("resource"):
                    for place, name in places(other.get("object") if inside else other):
                        if name == key:
                            place[name] = deepcopy(edge)
    lines = [json.dumps(row).encode() for row in rows]
    if draw(st.integers(0, 4)) == 0:
        lines = draw(st.permutations(lines))
    if draw(st.integers(0, 4)) == 0:
        lines[draw(st.integers(0, len(lines) - 1))] = draw(st.binary(max_size=40))
    if draw(st.integers(0, 9)) == 0:  # the clock of the whole record
        at = draw(st.sampled_from(NUMBERS))
        lines = [json.dumps({**json.loads(text())[0], "recv": at}).encode(), *lines]
    return b"\n".join(lines) + b"\n"


Asked = tuple[tuple[str, ...], int, str]


def asked(log_text: bytes, verbs: Sequence[tuple[str, ...]], job: int) -> Iterator[Asked]:
    """What is said on stderr, and the exit status, when the log is imported and asked about."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "watch.jsonl").write_bytes(log_text)
        trace = folder / "trace"
        code, _, said = run("import", "watch", str(folder / "watch.jsonl"), "-o", str(trace))
        yield ("import",), code, said
        for number, (verb, *given_words) in enumerate(verbs if trace.exists() else ()):
            put = {"OUT": str(folder / str(number))}
            for word, found in (("JOB", keys("jobs")), ("CRONJOB", keys("cronjobs"))):
                put[word] = found[job % len(found)]
            words = [put.get(word, word) for word in given_words]
            code, _, said = run(*verb.split(), str(trace), *words)
            yield (verb, *words), code, said


def check(log_text: bytes, verbs: Sequence[tuple[str, ...]], job: int) -> None:
    for words, code, said in asked(log_text, verbs, job):
        assert "fault of tracekit" not in said, (words, said)
        assert "not enough memory" not in said, (words, said)
        assert "Traceback" not in said, (words, said)
        assert code in (0, 1, 2), (words, said)


#: To look for a smaller one costs more than to find the next.
FUZZING = settings(
    deadline=None, database=None, phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@pytest.mark.nightly
def test_every_verb_is_asked_rightly() -> None:
    """A verb that is refused for its words would pass whatever the record holds."""
    log_text = b"".join(json.dumps(row).encode() + b"\n" for row in json.loads(text()))
    for words, code, said in asked(log_text, VERBS, 0):
        nothing_wrong = words[0] == "minimise" and "divergence" in said
        assert code in (0, 1) or nothing_wrong, (words, said)


#: Each was a fault of tracekit's own: where in a Job, and what stands there.
WRONG_TYPES: list[tuple[tuple[str, ...], Any]] = [
    (("spec", "template", "metadata"), 0),
    (("spec", "template", "metadata"), "x"),
    (("spec", "template"), []),
    (("spec", "selector", "matchLabels"), -0.0),
    (("spec", "selector"), "x"),
    (("metadata", "labels"), 0),
    (("metadata", "ownerReferences"), {"a": 0}),
    (("status", "uncountedTerminatedPods"), 1.5),
]


@pytest.mark.parametrize(("path", "value"), WRONG_TYPES, ids=repr)
def test_a_field_of_another_type(path: tuple[str, ...], value: Any) -> None:
    """No API server has such an object; the field counts as absent."""
    rows = json.loads(text())
    for row in rows:
        if row["resource"] == "jobs":
            holder = row["object"]
            for name in path[:-1]:
                holder = holder.get(name) or {}
            holder[path[-1]] = value
    log_text = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    verbs = [("replay", "--diff"), ("whatif", "--kubernetes-version", "v1.30.0"), ("diagnose",)]
    check(log_text, verbs, 0)


@pytest.mark.full
@given(logs(), st.lists(st.sampled_from(VERBS), min_size=4, max_size=4), st.integers(0, 99))
@settings(FUZZING, max_examples=3, derandomize=True)
def test_some_records(log_text: bytes, verbs: list[tuple[str, ...]], job: int) -> None:
    check(log_text, verbs, job)


#: What the verbs of one part may take together, for a log of a hundred kilobytes.
MEMORY_BYTES = 6 << 30
LIMIT_S = 300


def check_limited(log: str, part: int, job: int, limit_bytes: int) -> None:
    """Ask the verbs of a part in this process, which has a limit to its memory from here on."""
    resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes))
    check(Path(log).read_bytes(), VERBS[part::4], job)


def check_apart(log: Path, part: int, job: int) -> None:
    """Ask the verbs of a part in a process of its own; a failure names the log, which is kept."""
    arguments = (str(log), part, job, MEMORY_BYTES)
    call = f"from tests.attack import test_fuzz; test_fuzz.check_limited{arguments}"
    root = Path(__file__).parents[2]
    try:
        done = subprocess.run(
            [sys.executable, "-c", call], cwd=root, capture_output=True, text=True, check=False,
            timeout=LIMIT_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        pytest.fail(f"{log} is kept: after {LIMIT_S} s no end of {call}")
    assert done.returncode == 0, f"{log} is kept: {call}\n{done.stderr[-4000:]}"


@pytest.mark.nightly
def test_a_log_that_takes_too_much_memory_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next worker of 21.9 GB says as little of its record as the first."""
    monkeypatch.setattr(f"{__name__}.MEMORY_BYTES", 0)
    log = tmp_path / "watch.jsonl"
    log.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in json.loads(text())))
    with pytest.raises(AssertionError, match=f"{log} is kept"):
        check_apart(log, 0, 0)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(4))
def test_many_records(part: int, tmp_path: Path) -> None:
    """Another search each night; a failure is printed with the code that repeats it, and its log."""

    @given(logs(), st.integers(0, 99))
    @settings(FUZZING, max_examples=60, print_blob=True)
    def search(log_text: bytes, job: int) -> None:
        log = tmp_path / "watch.jsonl"  # the first that fails is the last
        log.write_bytes(log_text)
        check_apart(log, part, job)

    search()
