"""What a finding's advice and commands say: real names, none left to fill in."""

from __future__ import annotations

import re

import pytest

from tests.sql.conftest import session_of, trace_path  # noqa: F401 - fixtures
from tests.support.traces import ALL
from tracekit.answers.findings.advice import advice, commands
from tracekit.answers.findings.diagnosis import Wanted
from tracekit.sql.findings import diagnosis_of

_BLANK = re.compile(r"\b(TRACE|NAMESPACE|NAME|JOB|POD)\b")


@pytest.mark.parametrize("name", ALL)
def test_no_blank_is_left_to_fill_in(session_of, name: str) -> None:  # noqa: F811
    findings = diagnosis_of(session_of(name)).findings(Wanted(None))
    assert findings
    for finding in findings:
        text = advice(finding, "a trace")
        assert not _BLANK.search(text), text
        assert "tracekit explain a trace" not in text  # a name is one word of a shell
        for words in commands(finding, "a trace"):
            assert words[0] == "tracekit"
            assert words[2] == "a trace"
            target = finding.cases[0].target
            assert words[1] == "timeline" or f"{target.namespace}/{target.name}" in words


@pytest.mark.full
def test_a_time_of_a_command_is_a_whole_second(session_of) -> None:  # noqa: F811
    findings = diagnosis_of(session_of("v1.36.3-troubles")).findings(Wanted(None))
    asked = [words for finding in findings for words in commands(finding, "t")]
    times = [word for words in asked if words[1] == "timeline" for word in words if "T" in word]
    assert times
    assert not [at for at in times if "." in at]
