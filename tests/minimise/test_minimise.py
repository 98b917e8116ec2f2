"""The smallest trace shows what it is to show, and is still a record."""

from __future__ import annotations

import itertools
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tests.minimise.conftest import CHURN, LIES, SCENES, Lied, lied
from tests.support.traces import TRACES
from tracekit.answers.findings.divergences import RULES, rule_of
from tracekit.base.errors import TracekitError, UsageError
from tracekit.cli.main import cli
from tracekit.judge.judged import Judge, resolve_era
from tracekit.minimise.ddmin import ddmin
from tracekit.minimise.limit import OutOfTimeError, TimeLimit
from tracekit.minimise.run import _Search, minimise, write
from tracekit.minimise.showing import divergence
from tracekit.minimise.target import choose
from tracekit.trace.reading.reader import TraceReader

#: A record of one Job.
SMALL = TRACES / "incidents" / "counted-twice"
BOUNDS = ("LIST_BEGIN", "LIST_END")


def smallest(record: Lied, rule: str, folder: Path) -> tuple[Any, TraceReader]:
    target = choose(record.showing, record.objects, key=None, rule=rule)
    found = minimise(
        record.reader,
        record.judge,
        target,
        attempts_max=5000,
        limit=TimeLimit(),
        say=lambda *_: None,
    )
    write(found, folder)
    return found, TraceReader(folder)


def rows_of(reader: TraceReader) -> list[dict[str, Any]]:
    names = ("seq", "stream", "type", "uid", "rv", "recv_ns", "raw", "synthesized")
    rows: list[dict[str, Any]] = reader.table(names).to_pylist()
    return rows


def assert_a_record(reader: TraceReader) -> None:
    """No object without its list or add, none that outlives its end, no list without bounds."""
    seen: set[tuple[str, str]] = set()
    gone: set[tuple[str, str]] = set()
    listing: set[str] = set()
    for row in rows_of(reader):
        key = (row["stream"], row["uid"])
        match row["type"]:
            case "LIST_BEGIN":
                listing.add(row["stream"])
            case "LIST_END":
                listing.remove(row["stream"])
            case "LIST":
                assert row["stream"] in listing
                seen.add(key)
            case "ADDED":
                seen.add(key)
            case "MODIFIED" | "DELETED":
                assert key in seen
                assert key not in gone
                if row["type"] == "DELETED":
                    gone.add(key)
    assert not listing


@pytest.mark.parametrize(
    ("name", "rule"), [(name, rule) for name, rules in LIES.items() for rule in rules]
)
def test_each_kind_of_divergence_is_shown_alone(name: str, rule: str, tmp_path: Path) -> None:
    record = lied(name)
    whole = {shown.place for shown in record.showing.everything}
    found, smaller = smallest(record, rule, tmp_path / "small")
    era = resolve_era(smaller, None, None)
    shown = Judge(smaller, era).report().divergences
    assert {rule_of(j).id for j in shown if divergence(j) == found.target} == {rule}
    # A deletion or a creation and the Event that tells of it are one act of the controller.
    assert {other.what[0] for other in found.others if other.what} <= {"event"}
    # Nothing is shown that the whole does not show: its Job has failed, say.
    assert {other.place for other in found.others} <= whole
    assert smaller.rows < 80 < record.reader.rows / 20
    assert_a_record(smaller)
    assert smaller.header.scope["left_out"]
    # What is kept is kept as it was.
    before = {
        (r["stream"], r["type"], r["rv"], r["recv_ns"], r["raw"]) for r in rows_of(record.reader)
    }
    assert all(
        (r["stream"], r["type"], r["rv"], r["recv_ns"], r["raw"]) in before
        for r in rows_of(smaller)
    )


def test_a_record_of_one_job_is_made_smaller(tmp_path: Path) -> None:
    """The smallest witness: what the verb writes shows its finding in fewer rows."""
    whole, small = TraceReader(SMALL), tmp_path / "small"
    assert (
        invoke(
            "minimise", str(SMALL), "-o", str(small), "--finding", "TK203", "--attempts", "8"
        ).return_value
        == 0
    )
    reader = TraceReader(small)
    assert reader.rows < whole.rows
    assert_a_record(reader)
    found = invoke("diagnose", str(small), "-o", "json").stdout
    assert '"TK203"' in found


def test_an_attempt_without_end_ends_with_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was found by then is written, and that it ended there is said."""
    real, calls = _Search.shown, itertools.count(1)

    def shown(search: _Search, places: set[int]) -> Any:
        if next(calls) < 4:
            return real(search, places)
        os.kill(os.getpid(), signal.SIGALRM)
        time.sleep(60)
        raise AssertionError

    monkeypatch.setattr(_Search, "shown", shown)
    small = tmp_path / "small"
    result = invoke("minimise", str(SMALL), "-o", str(small), "--finding", "TK203")
    assert result.return_value == 0
    assert "the time limit of 10 min 0 s was reached: --time-limit with more may" in result.stderr
    assert "attempts are used up" not in result.stderr
    assert_a_record(TraceReader(small))


def test_a_limit_before_anything_was_found(tmp_path: Path) -> None:
    with pytest.raises(TracekitError, match="was reached before any part of"):
        invoke("minimise", str(SMALL), "-o", str(tmp_path / "small"), "--time-limit", "1ms")
    assert not (tmp_path / "small").exists()


def test_a_limit_that_met_another_error_is_the_limit() -> None:
    """DuckDB makes an error of its own of what comes amid a read of ours; a destructor nothing."""

    def swallowed() -> None:
        try:
            time.sleep(60)
        except BaseException as error:
            raise ValueError from error

    limit = TimeLimit(0.01)
    with limit.counting(), pytest.raises(OutOfTimeError):
        limit.run(swallowed)
    limit, times = TimeLimit(0.01), iter(range(2))
    with limit.counting(), pytest.raises(OutOfTimeError):
        limit.run(lambda: [suppressed(n) for n in times])
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    with pytest.raises(OutOfTimeError):
        limit.run(list)


def suppressed(times: int) -> None:
    """What loses the first that is raised."""
    with suppress(*(() if times else (OutOfTimeError,))):
        time.sleep(60)


def test_the_lies_cover_every_verdict_and_controller() -> None:
    rules = {rule.id: rule.title for rule in RULES}
    chosen = [rules[rule] for rule in (*CHURN, *SCENES)]
    for word in ("differs", "never came", "no rule leads to", "before its time", "after its time"):
        assert any(word in title for title in chosen), word
    assert {title.split()[0] for title in chosen} == {"job", "cronjob", "ttl"}


@pytest.mark.full
def test_the_same_trace_gives_the_same_bytes(tmp_path: Path) -> None:
    record = lied("v1.36.3-all")
    smallest(record, "TK308", tmp_path / "one")
    smallest(record, "TK308", tmp_path / "two")
    one, two = (
        {
            p.relative_to(tmp_path / n): p.read_bytes()
            for p in sorted((tmp_path / n).rglob("*"))
            if p.is_file()
        }
        for n in ("one", "two")
    )
    assert one == two


@pytest.mark.full
def test_a_finding_that_is_no_divergence_is_shown(tmp_path: Path) -> None:
    found, smaller = smallest(lied("v1.36.3-all"), "TK308", tmp_path / "small")
    assert not Judge(smaller, resolve_era(smaller, None, None)).report().divergences
    assert [other for other in found.others if other.kind == "Job"] == []
    assert smaller.rows < 40
    assert_a_record(smaller)


def invoke(*words: str) -> Any:
    return CliRunner().invoke(cli, words, catch_exceptions=False, standalone_mode=False)


def test_the_command_redacts_and_tells_how_it_goes(tmp_path: Path) -> None:
    record, key = lied("v1.36.3-churn7"), tmp_path / "key"
    key.write_bytes(b"0" * 64)
    whole, first, again = str(record.reader.path), tmp_path / "first", tmp_path / "again"
    for output in (first, again):
        result = invoke(
            "minimise", whole, "-o", str(output), "--finding", "TK101", "--redact", "all",
            "--key-file", str(key),
        )  # fmt: skip
        assert result.return_value == 0, result.output
    assert "of 7,795 rows, without other Jobs" in result.output
    assert (first / "trace.json").read_bytes() == (again / "trace.json").read_bytes()
    text = "".join(row["raw"] or "" for row in rows_of(TraceReader(first)))
    assert "redacted-" in text
    shown = invoke("replay", str(first), "--diff")
    assert shown.return_value == 1
    assert "1 divergence" in shown.output


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--finding", "TK9999"], "'TK9999' is no kind of finding"),
        (["--finding", "TK116"], "there is nothing to show: the trace has no TK116"),
        (["--job", "t-counted-twice/none"], "has no"),
        (["--key-file", "nowhere"], "--key-file is the key of --redact"),
        (["--attempts", "0"], "0 is not in the range"),
    ],
)
def test_bad_input_is_one_sentence(words: list[str], says: str, tmp_path: Path) -> None:
    with pytest.raises((TracekitError, click.ClickException), match=says):
        invoke("minimise", str(SMALL), "-o", str(tmp_path / "out"), *words)
    assert not (tmp_path / "out").exists()


def test_a_place_that_is_taken_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TracekitError, match="exists"):
        invoke("minimise", str(SMALL), "-o", str(tmp_path))


def test_delta_debugging_finds_the_fewest() -> None:
    tried: list[tuple[int, ...]] = []

    def still(things: Any) -> bool:
        tried.append(tuple(things))
        return {3, 11, 12} <= set(things)

    assert ddmin(range(40), still) == [3, 11, 12]
    assert ddmin([], still) == []
    assert ddmin([1, 2], lambda _: True) == []
    assert len(tried) < 120


@pytest.mark.parametrize(
    "name", ["n" * 300, "a-file/inside", "n" * 250], ids=["long", "in a file", "with what is added"]
)
def test_a_place_that_cannot_be_is_said_before_anything_is_looked_for(
    tmp_path: Path, name: str
) -> None:
    """It was said after the search, which takes minutes."""
    (tmp_path / "a-file").write_text("")
    result = CliRunner().invoke(cli, ["minimise", str(SMALL), "-o", str(tmp_path / name)])
    assert isinstance(result.exception, UsageError)
    assert str(result.exception).startswith(f"{tmp_path / name} cannot be written (")
    assert "Looking for" not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a-file"]
