"""Values of options that no value is: refused in one sentence, and nothing is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attack.answers import is_refusal, run
from tests.support.command_tree import options
from tests.support.traces import ROOT, import_log
from tracekit.cli.units import Named

RECORD = ROOT / "tests" / "data" / "replay" / "status-emptied-by-hand"


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    import_log(RECORD / "watch.jsonl.zst", tmp_path / "trace", RECORD)
    return "trace"


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"trace"}


@pytest.mark.parametrize(
    "words",
    [
        ("replay", "trace", "--processes", "1000000"),
        ("import", "watch", str(RECORD / "watch.jsonl.zst"), "-o", "out", f"--processes={2**63}"),
        ("info", "trace", "--clock-offset", "1e308"),
    ],
    ids=lambda words: words[-1],
)
@pytest.mark.usefixtures("trace")
def test_a_number_beyond_all_use_is_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    """A million processes would be begun."""
    assert is_refusal(run(*words)), run(*words)
    assert not left(tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ("import", "watch", str(RECORD / "watch.jsonl.zst"), "-o", "out", "--with="),
        ("diagnose", "trace", "--write-baseline="), ("diagnose", "trace", "--baseline="),
        ("demo", "-o", ""), ("report", "trace", "-o", ""), ("replay", "trace", "--parts="),
    ],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.usefixtures("trace")
def test_an_empty_name_is_no_place(tmp_path: Path, words: tuple[str, ...]) -> None:
    """A variable of a shell that was not set: `--with "$LOG"` read all of the current folder."""
    code, out, said = run(*words)
    assert is_refusal((code, out, said)), said
    assert "'' names nothing" in said
    assert not left(tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("report", "trace", "--parts", "out"), "keeps the answers of many traces"),
        (
            ("whatif", "trace", "--set", "spec.backoffLimit=0", "--parts", "out"),
            "keeps the answers of many traces",
        ),
        (("info", "trace", "--verify", "-o", "json"), "leave -o and --clock-offset out"),
        (("info", "trace", "--verify", "--clock-offset", "1"), "leave -o and --clock-offset out"),
        (("explain", "trace", "t-meddle/c0103-restart", "--at="), "'' is no time"),
        (("who", "trace", "--object="), "has no object ''"),
        (("versions", "--feature-gates", "AllAlpha=true"), "name one, like v1.36.3"),
        (
            ("whatif", "trace", "--set", "spec.suspend=true", "--why", "a", "--job", "b"),
            "both name a Job",
        ),
        (
            ("whatif", "trace", "--set", "spec.backoffLimit=0", "--why="),
            "no Job, CronJob or pod ''",
        ),
        (
            (
                "whatif",
                "trace",
                "--set",
                "spec.backoffLimit=0",
                "--why",
                "c0103-restart",
                "-o",
                "json",
            ),
            "--why tells two courses as text",
        ),
        (("replay", "trace", "--kubernetes-version", "v1.\u0663"), "is not a Kubernetes version"),
        (("manifests", "-A", "--storage", "\u0663Gi"), "is no size"),
        (("manifests", "-A", "--storage", "-1Gi"), "is no size"),
        (("manifests", "-A", "--keep", "forever"), "is no duration"),
        (("manifests", "-A", "--rotate="), "is no duration"),
        (("manifests", "-A", "--image="), "is no image"),
        (("manifests", "-A", "--install-namespace", "a/b"), "name of a namespace"),
        (("manifests", "-n", "shop", "-n", "Shop"), "name of a namespace"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, tuple) else None,
)
@pytest.mark.usefixtures("trace")
def test_nothing_that_is_asked_for_is_passed_over(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    answer = run(*words)
    assert is_refusal(answer), answer
    assert said in answer[2]
    assert not left(tmp_path)


def test_parts_of_one_trace_are_kept(
    trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trace so small is judged by one process, which kept none."""
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "trace" / "cache"))
    answers = [run("replay", trace, "--diff", "--parts", place) for place in ("parts", "others")]
    assert left(tmp_path) == {"parts"}
    assert list((tmp_path / "parts").glob("*/*.parquet"))
    assert [code for code, _, _ in answers] == [0, 0]
    assert answers[0][1] == answers[1][1]
    assert "nothing new for others" in answers[1][2]


def test_so_many_actors_as_are_asked_for(trace: str) -> None:
    told = run("who", trace, "--limit", "1")
    assert (told[0], len(told[1].splitlines())) == (0, 2), told
    assert "others left out: say --limit" in told[2]


def test_every_option_that_names_a_file_refuses_an_empty_one() -> None:
    files = {"FILE", "DIR", "OUT", "PLACE", "OTHER"}
    theirs = [(verb, o) for verb, o in options() if o.metavar in files]
    not_named = {o.opts[-1] for _, o in theirs if not isinstance(o.type, Named)}
    assert not_named == {"--kubeconfig"}  # kubectl takes an empty one as none
    assert len(theirs) > len(files)


def test_a_refused_output_leaves_no_folders(trace: str, tmp_path: Path) -> None:
    stranger = RECORD.parent / "ends-after-a-start"
    import_log(stranger / "watch.jsonl.zst", tmp_path / "other", stranger)
    assert is_refusal(run("merge", trace, "other", "-o", "no/such/out"))
    assert left(tmp_path) == {"other"}


def test_labels_are_asked_of_no_rows(trace: str) -> None:
    code, out, said = run("jobs", trace, "-l", "app in (a, b)", "--from", "9999-01-01T00:00:00Z")
    assert (code, out) == (0, ""), said
    assert "no Job found" in said
