"""Whatever `replay` is given: one sentence and exit status 2, or a stated degradation.

Never a traceback, and never a lost observation.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.traces import TRACES, json_lines
from tests.support.watchlog import job, line, listed, pod, small_log, write_log
from tracekit.cli import main as entry
from tracekit.trace.reading.reader import TraceReader

Rows = list[dict[str, Any]]
NAME = "v1.36.3-restart"


class Ran:
    """What one run of the command line said and how it ended."""

    def __init__(self, *arguments: str) -> None:
        try:
            result = CliRunner().invoke(entry.cli, list(arguments), standalone_mode=False)
            error = result.exception
        except SystemExit as ended:  # pragma: no cover - click does not, in this mode
            error = ended
        self.status = result.return_value if error is None else 2
        self.stdout, self.stderr = result.stdout, result.stderr
        if error is not None:
            assert isinstance(error, entry.TracekitError | entry.click.ClickException), repr(error)
            self.stderr += str(getattr(error, "message", None) or error)

    def sentence(self) -> str:
        assert self.status == 2
        assert self.stdout == ""
        text = self.stderr.strip()
        assert text
        assert "\n" not in text
        assert "Traceback" not in text
        return text


def _imported(tmp_path: Path, lines: list[bytes] | Rows, version: str | None = "v1.36.3") -> Path:
    packed = [item if isinstance(item, bytes) else json.dumps(item).encode() for item in lines]
    log = write_log(tmp_path / "log.jsonl", packed)
    options = ["--kubernetes-version", version] if version else []
    ran = Ran("import", "watch", str(log), "-o", str(tmp_path / "trace"), *options)
    assert ran.status in (0, None), ran.stderr
    return tmp_path / "trace"


def _real() -> Rows:
    return list(json_lines(TRACES / NAME / "watch.jsonl.zst"))


def _verdicts(trace: Path, *options: str) -> tuple[dict[str, Any], Ran]:
    ran = Ran("replay", str(trace), "--diff", "-o", "json", *options)
    assert ran.status in (0, 1), ran.stderr
    return json.loads(ran.stdout), ran


#### What cannot be replayed ####


def test_no_such_trace(tmp_path: Path) -> None:
    assert "nowhere" in Ran("replay", str(tmp_path / "nowhere"), "--diff").sentence()


@pytest.mark.parametrize("content", [b"", b"\x00\x01", b"PAR1", b'{"a": 1}\n'])
def test_a_file_that_is_no_trace(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    assert "file" in Ran("replay", str(tmp_path / "file"), "--diff").sentence()


def test_a_folder_that_is_no_trace(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert "folder" in Ran("replay", str(tmp_path / "folder"), "--diff").sentence()


@pytest.mark.parametrize("damage", ["truncated", "emptied", "overwritten"])
def test_a_damaged_trace(tmp_path: Path, damage: str) -> None:
    trace = _imported(tmp_path, _real())
    (segment,) = (trace / "log").glob("*.parquet")
    content = segment.read_bytes()
    segment.write_bytes(
        {
            "truncated": content[: len(content) // 2],
            "emptied": b"",
            "overwritten": content[:200] + b"\xff" * (len(content) - 400) + content[-200:],
        }[damage]
    )
    assert "damaged" in Ran("replay", str(trace), "--diff").sentence()


def test_a_trace_of_a_newer_format(tmp_path: Path) -> None:
    trace = _imported(tmp_path, small_log())
    header = json.loads((trace / "trace.json").read_text())
    (trace / "trace.json").write_text(json.dumps(header | {"format_version": 99}))
    assert "99" in Ran("replay", str(trace), "--diff").sentence()


#### Options that do not fit ####


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--job", "ns/absent"], "ns/absent"),
        (["--job", "no-such-job"], "no-such-job"),
        (["--job", "ns/three", "-n", "other"], "other"),
        (["--feature-gates", "JobReadyPod=true"], "JobReadyPod"),
        (["--feature-gates", "JobSuccessPolicy"], "JobSuccessPolicy"),
        (["--feature-gates", "JobSuccessPolicy=perhaps"], "perhaps"),
        (["--kubernetes-version", "newest"], "newest"),
        (["--kubernetes-version", "v1.2.3"], "1.2"),
        (["-o", "yaml"], "yaml"),
    ],
)
def test_an_option_that_does_not_fit(tmp_path: Path, options: list[str], said: str) -> None:
    trace = _imported(tmp_path, small_log())
    assert said in Ran("replay", str(trace), "--diff", *options).sentence()


def test_a_newer_version_than_any_known_is_replayed_as_the_newest_with_a_warning(
    tmp_path: Path,
) -> None:
    trace = _imported(tmp_path, _real(), version="v1.99.0")
    document, ran = _verdicts(trace)
    assert "1.99" in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1
    assert document["divergences"] == []


@pytest.mark.parametrize("version", ["v1.36.3-gke.1254000", "v1.36.3+k3s1", "v1.36.3-eks-abc"])
def test_a_distribution_replays_as_the_version_that_it_is_built_from(
    tmp_path: Path, version: str
) -> None:
    document, ran = _verdicts(_imported(tmp_path, _real(), version=version))
    assert ran.stderr == ""
    assert document["divergences"] == []


#### What is odd in a trace ####


def test_a_trace_without_a_job(tmp_path: Path) -> None:
    trace = _imported(tmp_path, [*listed("jobs", 5), *listed("pods", 5)])
    document, ran = _verdicts(trace)
    assert ran.status == 0
    assert document["divergences"] == []
    assert not any(
        count
        for actions in document["summary"].values()
        for counts in actions.values()
        for count in counts.values()
    )


def test_a_trace_of_control_rows_only(tmp_path: Path) -> None:
    document, ran = _verdicts(_imported(tmp_path, listed("jobs", 5)))
    assert (ran.status, document["observations"]) == (0, 2)


def test_objects_without_status_spec_or_metadata(tmp_path: Path) -> None:
    bare = {"kind": "Job", "apiVersion": "batch/v1"}
    named = {"name": "bare", "namespace": "ns", "uid": "u", "resourceVersion": "7"}
    lines = [
        *small_log(),
        line("jobs", "ADDED", bare),
        line("jobs", "ADDED", {**bare, "metadata": named}),
        line("jobs", "ADDED", {**bare, "metadata": {**named, "resourceVersion": None}}),
        line("jobs", "MODIFIED", {**bare, "metadata": named, "spec": None, "status": None}),
        line("jobs", "MODIFIED", {**bare, "metadata": named, "spec": 3, "status": []}),
        line("pods", "ADDED", {"kind": "Pod", "metadata": {**named, "uid": "p"}}),
        line("pods", "MODIFIED", {"metadata": {**named, "ownerReferences": None, "uid": "p"}}),
        line("events", "ADDED", {"kind": "Event", "metadata": named}),
        line("widgets", "ADDED", {"kind": "Widget", "metadata": named}),
    ]
    trace = _imported(tmp_path, lines)
    document, _ = _verdicts(trace)
    assert document["observations"] == len(lines)
    assert TraceReader(trace).rows == len(lines)


def _twice(rows: Rows) -> Rows:
    return [row for row in rows for _ in range(2 if row["type"] in ("ADDED", "MODIFIED") else 1)]


def _swapped(rows: Rows) -> Rows:
    """Neighbours of the pod and job streams change places, with their receive times."""
    choice = random.Random(3)
    result = list(rows)
    for at in range(len(result) - 1):
        one, other = result[at], result[at + 1]
        if {one["type"], other["type"]} <= {
            "ADDED",
            "MODIFIED",
            "DELETED",
        } and choice.random() < 0.2:
            result[at], result[at + 1] = other, one
    return result


def _clock_back(rows: Rows) -> Rows:
    """From the middle on the recorder's clock is half an hour behind."""
    half = len(rows) // 2
    late = [{**row, "recv": row["recv"] - 1_800_000_000_000} for row in rows[half:]]
    return rows[:half] + late


@pytest.mark.parametrize("oddity", [_twice, _swapped])
def test_repeated_and_disordered_observations_change_no_verdict(
    tmp_path: Path, oddity: Callable[[Rows], Rows]
) -> None:
    rows = oddity(_real())
    document, _ = _verdicts(_imported(tmp_path, rows))
    assert document["divergences"] == []
    assert document["observations"] >= len(rows)


def test_a_clock_that_goes_back_is_said_and_loses_nothing(tmp_path: Path) -> None:
    rows = _clock_back(_real())
    log = write_log(tmp_path / "log.jsonl", [json.dumps(row).encode() for row in rows])
    ran = Ran(
        *("import", "watch", str(log), "-o", str(tmp_path / "trace")),
        *("--kubernetes-version", "v1.36.3"),
    )
    assert "earlier than the line before" in ran.stderr
    document, _ = _verdicts(tmp_path / "trace")
    assert document["observations"] == len(rows)


def test_a_job_of_another_owner_with_pods_of_strangers(tmp_path: Path) -> None:
    """Pods whose owner is not in the trace, and a Job whose name was used before."""
    again = job("three", 40)
    again["metadata"]["uid"] = "uid-again"
    lines = [
        *small_log(),
        line("pods", "ADDED", pod("lonely", 20, "elsewhere")),
        line("jobs", "DELETED", job("three", 30)),
        line("jobs", "ADDED", again),
    ]
    _, ran = _verdicts(_imported(tmp_path, lines))
    assert ran.status in (0, 1)
