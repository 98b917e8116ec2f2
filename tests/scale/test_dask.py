"""Dask workers judge a trace: what dies, what is missing, what is not ours."""

from __future__ import annotations

import gc
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.scale.executors import Sums, halves
from tests.scale.test_processes import run, told
from tests.scale.test_processes import trace as trace  # noqa: PLC0414 - a fixture
from tracekit.base.errors import UsageError
from tracekit.judge import partitioned
from tracekit.judge.executors.cluster import Cluster, check_worker
from tracekit.judge.executors.tasks import Done, Lost
from tracekit.judge.judged import Judge, resolve_era
from tracekit.judge.verdict_cache import verdicts_key
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.stores.parts import Parts


@pytest.mark.full
def test_a_killed_worker_costs_a_retry_and_a_poison_task_itself(
    cluster: Cluster, tmp_path: Path
) -> None:
    tasks = [tuple(range(10 * n, 10 * n + 4)) for n in range(3)]
    once = Sums(once=11, memory=str(tmp_path / "died"))
    found = list(cluster.run(once, tasks, halves))
    assert (tmp_path / "died").exists()
    assert sum(o.result for o in found if isinstance(o, Done)) == 6 + 46 + 86
    found = list(cluster.run(Sums(poison=12), [(12,), (1, 2)], halves))
    assert [outcome.task for outcome in found if isinstance(outcome, Lost)] == [(12,)]
    assert sum(o.result for o in found if isinstance(o, Done)) == 3


def test_a_run_that_was_cut_goes_on_with_what_is_missing(
    cluster: Cluster, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", "/dev/null/nowhere")  # no verdicts are kept
    monkeypatch.setattr(partitioned, "_PART_ROWS", 300)
    reader = TraceReader(trace)
    era, key = resolve_era(reader, None, None), verdicts_key(reader.snapshot, None, None)
    whole = told(Judge(reader, era).tally())
    parts = Parts(str(tmp_path))

    def judged() -> tuple[object, ...]:
        return told(Judge(reader, era, kept_as=key, executor=cluster, parts=parts).tally())

    assert judged() == whole
    made = {path.name: path.stat().st_mtime_ns for path in (tmp_path / key).iterdir()}
    assert len(made) > 2
    first, second, *_ = sorted(made)
    (tmp_path / key / first).unlink()
    (tmp_path / key / second).write_bytes(b"cut off")
    assert judged() == whole
    again = {path.name: path.stat().st_mtime_ns for path in (tmp_path / key).iterdir()}
    assert {name for name in again if again[name] != made.get(name)} == {first, second}


@pytest.mark.parametrize(
    ("version", "python", "said"),
    [
        (None, "3.11.7.final.0", "has no tracekit on Python 3.11, and here is tracekit 0.1.0"),
        ("0.0.9", "3.11.7.final.0", "has tracekit 0.0.9 on Python 3.11, and here is"),
        ("0.1.0", "2.7.18.final.0", "has tracekit 0.1.0 on Python 2.7, and here is"),
        ("0.1.0", "3.11.9.final.0", None),
    ],
)
def test_workers_of_another_kind_are_refused(
    version: str | None, python: str, said: str | None
) -> None:
    def kind(tracekit: str | None, python: str) -> dict[str, dict[str, str | None]]:
        return {"packages": {"kube-tracekit": tracekit}, "host": {"python": python}}

    ours = kind("0.1.0", "3.11.7.final.0")
    refused = pytest.raises(UsageError, match=said) if said else nullcontext()
    with refused:
        check_worker("tcp://scheduler:8786", "tcp://worker:1", kind(version, python), ours)


def test_workers_of_the_same_version_but_other_code_are_refused() -> None:
    with pytest.raises(UsageError, match="another tracekit of the same version"):
        partitioned.check_code("0" * 64)


def test_a_scheduler_that_does_not_answer_is_one_sentence(
    trace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracekit.judge.executors.cluster._ANSWERS_S", 1)
    address = "tcp://127.0.0.1:9"
    status, out, err = run(capsys, "replay", str(trace), "--diff", "--scheduler", address)
    assert (status, out) == (2, "")
    assert err.startswith(f"tracekit: --scheduler {address}: no Dask scheduler answers there")
    assert err.count("\n") == 1


def test_a_password_in_an_address_is_refused_and_not_printed(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["replay", str(trace), "--diff", "--scheduler", "tcp://me:hunter2@127.0.0.1:9"]
    status, out, err = run(capsys, *words)
    assert (status, out) == (2, "")
    assert "takes no user or password" in err
    assert "hunter2" not in err


@pytest.mark.parametrize("address", ["nowhere", "foo://h:1", "tls://127.0.0.1:9", "inproc://x"])
def test_what_is_no_address_is_one_sentence_at_once(
    trace: Path, capsys: pytest.CaptureFixture[str], address: str
) -> None:
    """Half a minute and a traceback followed: a client that had not begun waited to be closed."""
    began_s = time.monotonic()
    status, out, err = run(capsys, "replay", str(trace), "--diff", "--scheduler", address)
    gc.collect()
    assert (status, out, capsys.readouterr().err) == (2, "", "")
    assert err.startswith(f"tracekit: --scheduler {address}: no Dask scheduler answers there")
    assert err.count("\n") == 1
    assert time.monotonic() - began_s < 25
