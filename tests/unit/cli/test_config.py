"""Defaults from a file and from the environment, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sql.conftest import trace_path  # noqa: F401 - a fixture
from tests.unit.cli.test_sql import run  # noqa: F401 - a fixture
from tracekit.cli.completion import kubectl_lines
from tracekit.cli.config import config_file

NAME = "v1.36.3-restart"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def write(text: str) -> Path:
        file = tmp_path / f"config-{len(list(tmp_path.iterdir()))}.toml"
        file.write_text(text)
        monkeypatch.setenv("TRACEKIT_CONFIG", str(file))
        return file

    return write


def test_where_the_file_lies(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TRACEKIT_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert config_file() == tmp_path / "tracekit" / "config.toml"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert config_file() == tmp_path / ".config" / "tracekit" / "config.toml"


@pytest.mark.full
def test_a_verbs_table_wins_over_the_rest_and_the_command_line_over_all(
    run,  # noqa: F811
    trace_path,  # noqa: F811
    config,
    monkeypatch,
) -> None:
    trace = trace_path(NAME)
    config('output = "csv"\n[jobs]\nsort-by = "-job"\n[report]\nforce = true\n')
    assert run("jobs", trace)[1].startswith("trace,namespace,job,")
    names = [line.split(",")[2] for line in run("jobs", trace)[1].splitlines()[1:]]
    assert names == sorted(names, reverse=True)
    monkeypatch.setenv("TRACEKIT_OUTPUT", "jsonl")
    assert run("jobs", trace)[1].startswith('{"trace":')
    monkeypatch.setenv("TRACEKIT_JOBS_OUTPUT", "markdown")
    assert run("jobs", trace)[1].startswith("| trace |")
    assert run("jobs", trace, "-o", "table")[1].startswith("JOB ")


@pytest.mark.parametrize("outcomes", ["'Running'", "['failed', 'Running']"])
def test_what_may_be_given_several_times_is_a_word_or_a_list(
    run,  # noqa: F811
    trace_path,  # noqa: F811
    config,
    outcomes: str,
) -> None:
    config(f"[jobs]\noutcome = {outcomes}\n")
    wanted = outcomes.strip("[]").replace("'", "").split(", ")
    asked = [word for outcome in wanted for word in ("--outcome", outcome)]
    trace = trace_path(NAME)
    every = run("jobs", trace, "-o", "csv", "--outcome", "Complete")
    assert run("jobs", trace, "-o", "csv") == run("jobs", trace, "-o", "csv", *asked) != every


def test_a_default_for_all_is_no_place_to_write(run, trace_path, config, tmp_path) -> None:  # noqa: F811
    config('output = "json"\n')
    assert "Missing" not in run("compact", trace_path(NAME), "-o", tmp_path / "small")[2]
    assert (tmp_path / "small").is_dir()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[job]\n", "has a table [job], and no verb is called so; did you mean jobs?"),
        ("[jobs]\noutcom = 1\n", "[jobs] has no option 'outcom'; did you mean outcome?"),
        ('namspace = "x"\n', "no verb has an option 'namspace'; did you mean namespace?"),
        ('jobs = "x"\n', "jobs is a verb: write its options below [jobs]"),
        ("[jobs", "is no TOML"),
        ("[jobs]\noutcome = 'Faild'\n", "did you mean Failed?"),
    ],
)
def test_what_is_wrong_is_one_sentence(run, trace_path, config, text: str, said: str) -> None:  # noqa: F811
    config(text)
    code, out, err = run("jobs", trace_path(NAME))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_a_file_that_was_named_has_to_be_there(run, trace_path, monkeypatch) -> None:  # noqa: F811
    monkeypatch.setenv("TRACEKIT_CONFIG", "/nowhere.toml")
    assert "does not exist: set TRACEKIT_CONFIG" in run("jobs", trace_path(NAME))[2]
    assert run("--help")[0] == 0


@pytest.mark.parametrize("verb", ["compact", "report", "redact", "minimise", "merge", "import"])
def test_a_format_is_no_file(run, trace_path, verb: str, tmp_path, monkeypatch) -> None:  # noqa: F811
    monkeypatch.chdir(tmp_path)
    code, _, err = run(verb, trace_path(NAME), "-o", "json")
    assert code == 2
    assert "'json' is a format" in err
    assert not list(tmp_path.iterdir())


#### jobs ####


def test_jobs_by_label_and_in_order(run, trace_path) -> None:  # noqa: F811
    trace = trace_path(NAME)
    everything = run("jobs", trace, "-A")[1].splitlines()
    some = run("jobs", trace, "-l", "app")[1].splitlines()
    code, out, err = run("jobs", trace, "-l", "app=nothing")
    assert (code, out, err) == (0, "", "tracekit: no Job found\n")
    assert len(everything) > 3
    assert set(some[1:]) <= set(everything[1:])
    assert "leave one out" in run("jobs", trace, "-A", "-n", "x")[2]
    by_path = run("jobs", trace, "-o", "json", "--sort-by", "{.status.startTime}")
    assert by_path[0] == 0
    assert by_path == run("jobs", trace, "-o", "json", "--sort-by", "started_at")
    assert "did you mean duration_s" in run("jobs", trace, "--sort-by", "duratio_s")[2]
    assert "DESCRIBE jobs" in run("jobs", trace, "--sort-by", "took")[2]


def test_info_says_why_replay_counts_fewer(run, trace_path) -> None:  # noqa: F811
    trace = trace_path("v1.36.3-troubles")
    assert (
        "They have 46 names, and some were used again; replay counts names."
        in run("info", trace)[1]
    )
    assert "46 Jobs" in run("replay", trace, "--diff")[1]


#### kubectl tracekit ####


def test_kubectl_completes_verbs_options_and_names(trace_path) -> None:  # noqa: F811
    trace = str(trace_path(NAME))
    verbs = list(kubectl_lines([], "re"))
    assert [line.split("\t")[0] for line in verbs] == ["record", "report", "replay", "redact", ":4"]
    assert list(kubectl_lines(["jobs"], "")) == [":16"]
    assert list(kubectl_lines(["jobs", trace, "-o"], "js")) == ["json", "jsonl", ":4"]
    keys = list(kubectl_lines(["explain", trace], ""))
    assert all("/" in key for key in keys[:-1])
    assert len(keys) > 3
    assert "--sort-by" in [line.split("\t")[0] for line in kubectl_lines(["jobs", trace], "--s")]
