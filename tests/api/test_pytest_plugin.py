"""The pytest plugin, in a pytest of its own."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]


@pytest.fixture
def inner(pytester: pytest.Pytester, trace_path):
    (pytester.path / "traces").mkdir()
    (pytester.path / "traces" / "run").symlink_to(trace_path("v1.36.3-restart"))
    pytester.makeini("[pytest]\ntracekit_traces = traces\n")
    return pytester


def run(inner: pytest.Pytester, body: str) -> pytest.RunResult:
    inner.makepyfile(body)
    return inner.runpytest_inprocess(
        "-p", "no:tracekit", "-p", "tracekit.pytest_plugin", "-p", "no:cacheprovider"
    )


def test_a_trace_within_the_rules_passes(inner) -> None:
    result = run(
        inner,
        """
        def test_it(assert_no_divergence, golden_trace):
            assert_no_divergence("traces/run", version="v1.36.3")
            assert golden_trace("run").jobs().num_rows > 10
        """,
    )
    result.assert_outcomes(passed=1)


def test_a_divergence_fails_with_its_why(inner) -> None:
    result = run(
        inner,
        """
        def test_it(assert_no_divergence):
            assert_no_divergence("traces/run", version="v1.28.15")
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*divergences from the rules of v1.28.15*", "*expected*"])


def test_a_missing_golden_trace_names_those_that_there_are(inner) -> None:
    result = run(
        inner,
        """
        def test_it(golden_trace):
            golden_trace("rum")
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*there are: run*"])


def test_names_of_folders_are_written_out(inner) -> None:
    """What pytest prints is the log of a CI: a folder's name must be no command there."""
    hostile = inner.path / "traces" / "ev\x1b[31mil\n::error::\u202ename"
    hostile.mkdir()
    (hostile / "trace.json").touch()
    result = run(
        inner,
        """
        def test_it(golden_trace):
            golden_trace("rum")
        """,
    )
    result.assert_outcomes(failed=1)
    text = str(result.stdout)
    assert "\\x1b[31mil\\n\\x3a:error::\\u202ename, run" in text
    assert not {"\x1b", "\u202e"} & {*text}
    assert not [line for line in result.stdout.lines if line.startswith("::")]
