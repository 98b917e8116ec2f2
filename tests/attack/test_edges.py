"""Single values at the edges, each of which once ended a verb with a traceback."""

from __future__ import annotations

import json
import os
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.attack.answers import run
from tests.attack.forge import honest
from tests.attack.test_fuzz import text
from tests.support.traces import TRACES, json_lines
from tracekit.trace.importers.audit.entry import decode_entry


def _late(rows: list[dict[str, Any]]) -> None:
    _job_rows(rows)[2]["recv"] = 2**63 - 1


def _edited(rows: list[dict[str, Any]]) -> None:
    _job_rows(rows)[-1]["object"]["spec"]["backoffLimit"] = 10**30


def _nameless(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        meta = row["object"].get("metadata", {})
        if row["resource"] in ("jobs", "pods") and "uid" in meta:
            meta["uid"] = None
        for owner in meta.get("ownerReferences", ()):
            owner["uid"] = None


def _job_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [r for r in rows if r["resource"] == "jobs" and r["type"] in ("ADDED", "MODIFIED")]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_late, ("replay", "--diff")),
        (_edited, ("report", "-o", "OUT")),
        (_nameless, ("export", "--format", "otlp")),
    ],
)
def test_a_verb_takes_it(tmp_path: Path, change: Any, words: tuple[str, ...]) -> None:
    rows = json.loads(text())
    change(rows)
    log, trace = tmp_path / "watch.jsonl", tmp_path / "trace"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("import", "watch", str(log), "-o", str(trace))[0] == 0
    put = [str(tmp_path / "out") if word == "OUT" else word for word in words[1:]]
    code, _, said = run(words[0], str(trace), *put)
    assert code in (0, 1), said
    assert "fault of tracekit" not in said


@contextmanager
def little_memory() -> Iterator[None]:
    """Let this process have a gigabyte more than it has."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize("version", ["v1.14.10", "v1.21.14", "v1.36.3"])
def test_a_job_may_ask_for_two_thousand_million_pods(tmp_path: Path, version: str) -> None:
    """Up to 1.21 a sync creates all of them at once: 17 GB of intents, were they made."""
    rows = json.loads(text())
    name = _job_rows(rows)[0]["object"]["metadata"]["name"]
    for row in _job_rows(rows):
        if row["object"]["metadata"]["name"] == name:
            row["object"]["spec"].update(parallelism=2**31 - 1, completions=2**31 - 1)
    log, trace = tmp_path / "watch.jsonl", tmp_path / "trace"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("import", "watch", str(log), "-o", str(trace))[0] == 0
    with little_memory():
        code, _, said = run("diagnose", str(trace), "--kubernetes-version", version)
    assert code in (0, 1), said


def _no_end(*_: object) -> None:
    pytest.fail("half a minute of processor time, and no verdict")


@pytest.mark.parametrize("version", ["v1.21.14", "v1.36.3"])
@pytest.mark.parametrize("seconds", [0, -1])
def test_a_job_may_have_no_time_at_all(tmp_path: Path, version: str, seconds: int) -> None:
    """A deadline that a sync sets from its own time is no timer to look before: that has no end."""
    rows = json.loads(text())
    for row in _job_rows(rows):
        row["object"]["spec"]["activeDeadlineSeconds"] = seconds
    log, trace = tmp_path / "watch.jsonl", tmp_path / "trace"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("import", "watch", str(log), "-o", str(trace))[0] == 0
    signal.signal(signal.SIGPROF, _no_end)
    signal.setitimer(signal.ITIMER_PROF, 30)
    try:
        code, _, said = run("replay", str(trace), "--diff", "--kubernetes-version", version)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    assert code in (0, 1), said


_YEAR_NS = 365 * 86_400 * 10**9


def _last_row_late(namespace: str, path: Path, late_ns: int) -> Path:
    """A record of one namespace, and of one more row that came a long time after."""
    rows = []
    for row in json_lines(TRACES / "v1.36.3-all" / "watch.jsonl.zst"):
        meta = row["object"].get("metadata", {})
        if namespace in (meta.get("namespace"), meta.get("name")) or not (
            meta.get("namespace") or meta.get("name")
        ):
            rows.append(row)
    rows.sort(key=lambda row: row["recv"])
    late = deepcopy([r for r in rows if r["resource"] == "pods" and "metadata" in r["object"]][-1])
    late["recv"] += late_ns
    meta = late["object"]["metadata"]
    meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 10**6)
    log, trace = path / "watch.jsonl", path / "trace"
    log.write_text("".join(json.dumps(row) + "\n" for row in [*rows, late]))
    assert run("import", "watch", str(log), "-o", str(trace))[0] == 0
    return trace


def test_a_job_that_fails_for_ever_costs_no_more_in_a_longer_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred rows, of which the last came a year later: a run of the model had no end."""
    bound = "tracekit.answers.whatif.model._CALLS_AT_LEAST"
    monkeypatch.setattr(bound, 10_000, raising=False)  # a tenth of the time
    trace = _last_row_late("t-backoff-limit", tmp_path, _YEAR_NS)
    words = ("--set", "spec.backoffLimit=2147483647", "-o", "json")
    signal.signal(signal.SIGPROF, _no_end)
    signal.setitimer(signal.ITIMER_PROF, 30)
    try:
        code, out, said = run("whatif", str(trace), *words)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    assert code == 0, said
    jobs = {job["name"]: job for job in json.loads(out)["jobs"]}
    assert {name: job["verdict"] for name, job in jobs.items()} == {
        "flaky": "unknowable", "once": "unknowable", "partly": "same", "recovers": "same",
    }  # fmt: skip
    assert jobs["once"]["reason"] == "censored"
    assert "it goes on and on" in jobs["once"]["why"]


@pytest.mark.parametrize(
    "words",
    [
        ("redact", "TRACE", "-o", "OUT"),
        ("compact", "TRACE", "-o", "OUT"),
        ("merge", "TRACE", "TRACE", "-o", "OUT"),
        ("import", "watch", "LOG", "-o", "OUT"),
    ],
)
def test_a_name_that_is_no_text_leaves_nothing_behind(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    log, trace, out = tmp_path / "watch.jsonl", tmp_path / "trace", tmp_path / "out\udcff"
    log.write_text("".join(json.dumps(row) + "\n" for row in json.loads(text())))
    assert run("import", "watch", str(log), "-o", str(trace))[0] == 0
    before = sorted(tmp_path.iterdir())
    put = {"TRACE": str(trace), "LOG": str(log), "OUT": str(out)}
    code, _, said = run(*(put.get(word, word) for word in words))
    assert (code, "is not UTF-8: rename it" in said) == (2, True), said
    assert sorted(tmp_path.iterdir()) == before


def test_what_cannot_be_read_is_not_said_to_be_absent(tmp_path: Path) -> None:
    """NaN is no JSON: of a Job with one there are pods and Events, and of a CronJob nothing."""
    rows = json.loads(text())
    for row in rows:
        if row["resource"] in ("jobs", "cronjobs") and "metadata" in row["object"]:
            row["object"]["metadata"]["generation"] = float("nan")
    jobs = sorted(
        f"{row['object']['metadata']['namespace']}/{row['object']['metadata']['name']}"
        for row in _job_rows(rows)
    )
    log, trace = tmp_path / "watch.jsonl", tmp_path / "trace"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("import", "watch", str(log), "-o", str(trace))[0] == 0
    code, _, said = run("compare", str(trace), jobs[0], jobs[-1])
    assert (code, "only what belongs to it was seen" in said) == (2, True), said
    assert "did you mean" not in said
    code, _, said = run("cron", "lint", str(trace))
    assert (code, "has no CronJob that can be read, and" in said) == (2, True), said


_JOB = (
    '{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a","namespace":"n","uid":"u",'
    '"resourceVersion":"5","creationTimestamp":"2024-01-01T00:00:00Z"}}'
)
_AUDIT = (
    '{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":"x","stage":"ResponseComplete",'
    '"level":"RequestResponse","requestURI":"/apis/batch/v1/namespaces/n/jobs/a","verb":"update",'
    '"user":{"username":"u"},"objectRef":{"resource":"jobs","namespace":"n","name":"a",'
    '"apiGroup":"batch"},"responseStatus":{"code":%s},"stageTimestamp":"2024-01-01T00:00:00Z",'
    f'"requestReceivedTimestamp":"2024-01-01T00:00:00Z","responseObject":{_JOB}%s}}\n'
)


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (_AUDIT % (200, "") + _AUDIT % ("9" * 30, ""), 0),
        ("NAME" + " " * 300_000 + "AGE\n" + "a" * 300_000 + "\n", 2),
        (f'{{"type":["a"],"object":{_JOB}}}\n', 2),
    ],
    ids=["code", "wide", "type"],
)
def test_a_file_is_read_or_refused(tmp_path: Path, content: str, status: int) -> None:
    """Each was a fault of tracekit's own."""
    log, trace = tmp_path / "log", tmp_path / "trace"
    log.write_text(content)
    code, _, said = run("import", str(log), "-o", str(trace))
    assert code == status, said
    assert "fault of tracekit" not in said


def test_names_of_our_own_are_no_part_of_a_log() -> None:
    """They told the revision of an answer, whatever its object said, and moved its times."""
    told = ',"tracekit/told":["Job",7,"u",true],"tracekit/times":[1,1],"tracekit/shift":5'
    line = _AUDIT % (200, f'{told},"tracekit/server":3')
    entry = decode_entry(line.encode())
    assert entry == decode_entry((_AUDIT % (200, "")).encode())


def test_a_volume_of_a_size_that_nobody_has_is_refused() -> None:
    code, out, said = run("manifests", "-A", "--storage", "9" * 5000)
    assert (code, out, said.count("\n")) == (2, "", 1), said
    assert "write it like 10Gi" in said


@pytest.mark.parametrize(
    "words",
    [
        ("diagnose", "TRACE", "--baseline", "FILE"),
        ("sql", "TRACE", "-f", "FILE"),
        ("redact", "TRACE", "-o", "OUT", "--key-file", "FILE"),
        ("simulate", "--workload", "FILE", "-o", "OUT"),
    ],
    ids=lambda words: words[0],
)
def test_a_file_without_an_end_is_not_read_to_it(tmp_path: Path, words: tuple[str, ...]) -> None:
    """In a checkout the baseline may be a link to /dev/zero: all memory of the machine."""
    places = {"TRACE": tmp_path / "trace", "FILE": tmp_path / "link", "OUT": tmp_path / "out"}
    places["FILE"].symlink_to("/dev/zero")
    honest(places["TRACE"])
    code, out, said = run(*(str(places.get(word, word)) for word in words))
    assert (code, out) == (2, "")
    assert "has more than" in said


def test_what_a_shell_hands_over_is_read(tmp_path: Path) -> None:
    """`-f <(…)` names a pipe."""
    honest(tmp_path / "trace")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writing = threading.Thread(target=pipe.write_text, args=("SELECT 7 AS n",))
    writing.start()
    assert run("sql", str(tmp_path / "trace"), "-f", str(pipe), "-o", "csv")[:2] == (0, "n\n7\n")
    writing.join()
