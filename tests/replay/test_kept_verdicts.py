"""Verdicts that this machine keeps are those that a new judge gives, and judging is spared."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tracekit.api import Trace
from tracekit.base.errors import TracekitError
from tracekit.cli.compact import compact
from tracekit.cli.demo import demo
from tracekit.cli.sql_many import VerdictsQuestion
from tracekit.judge import engine
from tracekit.judge.clocks import timed_of
from tracekit.judge.judged import Asked, Judge, resolve_era
from tracekit.judge.run_context import run_context_of
from tracekit.judge.verdict_cache import verdicts_key
from tracekit.trace.format.limits import lifted
from tracekit.trace.reading import files
from tracekit.trace.reading.reader import TraceReader
from tracekit.versions.overrides import AskedRules


@pytest.fixture(scope="module")
def lie(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace with divergences, some of whose fields differ."""
    place = tmp_path_factory.mktemp("kept") / "demo"
    CliRunner().invoke(demo, ["-o", str(place)], standalone_mode=False)
    return place / "lie"


def judge_of(trace: Path, *, kept: bool) -> Judge:
    reader = TraceReader(trace)
    key = verdicts_key(reader.snapshot, None, None, None) if kept else None
    return Judge(reader, resolve_era(reader, None, None), kept_as=key)


def spare_judging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "diff_groups", None)
    monkeypatch.setattr(engine.Engine, "judge_into", None)


@pytest.mark.full
def test_the_bytes_of_an_answer_do_not_tell_that_it_was_kept(
    lie: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = VerdictsQuestion(AskedRules(), no_limits=False)
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path))
    kept = question.answer(str(lie))
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", "/dev/null/nowhere")
    assert question.answer(str(lie)) == kept


@pytest.mark.parametrize(
    "asked",
    [
        Asked(),
        Asked(controllers=("ttl", "cronjob")),
        Asked(namespace="t-fixed-completions"),
        Asked(job="t-fixed-completions/three"),
        Asked(job="t-fixed-completions/three", controllers=("job",)),
    ],
    ids=lambda asked: asked.part or "all",
)
def test_what_is_kept_is_what_a_new_judge_says(
    asked: Asked, lie: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = judge_of(lie, kept=False).report(asked)
    assert judge_of(lie, kept=True).report(asked).judgements == new.judgements  # judged, and kept
    spare_judging(monkeypatch)
    report, tally = judge_of(lie, kept=True).report(asked), judge_of(lie, kept=True).tally(asked)
    assert report.judgements == new.judgements
    assert tally.divergences == tally.judgements == new.divergences
    assert tally.summary() == report.summary() == new.summary()
    assert tally.jobs == report.jobs == new.jobs
    assert tally.longest_lag_ns == new.longest_lag_ns


def test_one_job_is_searched_alone(lie: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = judge_of(lie, kept=False)
    where = ("t-fixed-completions", "three")
    expected, about = new.job(*where), new.about("Job", *where)
    judge_of(lie, kept=True).report()
    spare_judging(monkeypatch)
    judge = judge_of(lie, kept=True)
    found = judge.job(*where)
    assert found is not None
    assert expected is not None
    assert found.judgements == expected.judgements
    assert any(judgement.fields for judgement in found.judgements)
    assert judge.about("Job", *where) == about


def test_a_trace_that_was_damaged_since_is_not_answered_for(lie: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    shutil.copytree(lie, trace)
    judge_of(trace, kept=True).report()
    segment = next((trace / "log").iterdir())
    content = bytearray(segment.read_bytes())
    content[len(content) // 3] ^= 1
    segment.write_bytes(content)
    with pytest.raises(TracekitError, match="damaged"):
        judge_of(trace, kept=True).report()


def test_who_reads_them_imports_no_engine(lie: Path) -> None:
    judge_of(lie, kept=True).tally()
    program = (
        "import sys; from tracekit.cli.main import main\n"
        "try: main()\n"
        "finally: print([n for n in ('tracekit.judge.engine', 'tracekit.check.diff.judge', "
        "'tracekit.check.replay.search', 'duckdb', 'numpy') if n in sys.modules])"
    )
    for words in (("--diff",), ("--job", "t-fixed-completions/three")):
        done = subprocess.run(
            [sys.executable, "-c", program, "replay", str(lie), *words],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.splitlines()[-1] == "[]", done.stderr
        assert "judged" not in done.stderr


@pytest.mark.full
def test_it_is_said_once_that_all_is_judged(
    lie: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    told: list[int] = []
    for _ in range(2):
        with Trace(lie, before_judging=told.append) as trace:
            trace.explain("t-fixed-completions/three")
            trace.sql("SELECT count(*) FROM verdicts").fetchall()
    assert told == [TraceReader(lie).rows]


def test_a_kept_file_that_was_damaged_is_made_again(
    lie: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path))
    new = judge_of(lie, kept=True).report()
    (kept,) = (tmp_path / "verdicts").iterdir()
    content = bytearray(kept.read_bytes())
    content[content.index(b"match")] ^= 1
    kept.write_bytes(content)
    assert judge_of(lie, kept=True).report().judgements == new.judgements
    (again,) = (tmp_path / "verdicts").iterdir()
    assert again.read_bytes() != content


def test_a_machine_without_a_place_goes_without(
    lie: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "file"))
    judge = judge_of(lie, kept=True)
    assert judge.tally().divergences == judge.report().divergences != []


def test_compaction_takes_the_verdicts_along(
    lie: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = judge_of(lie, kept=True).report()
    compacted = tmp_path / "compacted"
    result = CliRunner().invoke(compact, [str(lie), "-o", str(compacted)])
    assert result.exit_code == 0, result.output
    spare_judging(monkeypatch)
    assert judge_of(compacted, kept=True).report().judgements == new.judgements


def test_what_a_whole_trace_tells_is_read_once(
    lie: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path))
    told = [(judge.era, judge.run_context, judge.objects) for judge in [judge_of(lie, kept=False)]]
    for place in ("judge.detected._facts", "judge.run_context.run_context_of"):
        monkeypatch.setattr(f"tracekit.{place}", None)
    monkeypatch.setattr("tracekit.judge.fact_cache.objects_of", None)
    judge = judge_of(lie, kept=False)
    assert [(judge.era, judge.run_context, judge.objects)] == told
    reader = TraceReader(lie)
    context = run_context_of(reader, timed_of(reader))
    assert told[0][1] == context.watching("jobs", "pods")


def test_a_kept_fact_that_was_damaged_is_made_again(
    lie: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path))
    objects = judge_of(lie, kept=False).objects
    (kept,) = (tmp_path / "facts").glob("objects-*")
    kept.write_bytes(kept.read_bytes().replace(b"three", b"seven"))
    assert judge_of(lie, kept=False).objects == objects
    (again,) = (tmp_path / "facts").glob("objects-*")
    assert b"three" in again.read_bytes()


def test_of_a_trace_that_lost_something_no_fact_is_kept(
    lie: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    trace = tmp_path / "trace"
    shutil.copytree(lie, trace)
    segment = next((trace / "log").iterdir())
    segment.write_bytes(segment.read_bytes()[:-1])
    reader = TraceReader(trace, on_damage="skip")
    assert reader.is_damaged
    assert Judge(reader, resolve_era(reader, "v1.36.3", None)).objects.jobs == ()
    assert not (tmp_path / "cache" / "facts").exists()


def test_what_a_trace_comes_to_is_counted_once(
    lie: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    with lifted():
        TraceReader(lie, on_damage="skip")
    assert not (tmp_path / "cache" / "limits").exists()
    TraceReader(lie, on_damage="skip")
    monkeypatch.setattr(files, "check_group", None)
    rows = TraceReader(lie, on_damage="skip").table()
    assert rows.num_rows == TraceReader(lie).rows
    trace = tmp_path / "trace"
    shutil.copytree(lie, trace)
    segment = next((trace / "log").iterdir())
    content = bytearray(segment.read_bytes())
    content[len(content) // 3] ^= 1
    segment.write_bytes(content)
    assert TraceReader(trace, on_damage="skip").is_damaged
