"""A trace that is looked at in parts has the findings of one that is looked at whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from weakref import ref

import pytest

from tests.findings.conftest import Traces
from tracekit.answers.findings.diagnosis import diagnose
from tracekit.answers.parts import OnePart
from tracekit.answers.trace_model import Facts, Job
from tracekit.report.findings import document
from tracekit.sql import facts_in_parts, findings
from tracekit.sql.session import Session


def _told(path: str) -> object:
    with closing(Session([path])) as session:
        return document(findings.findings_of(session), trace="t", kubernetes_version=None)


@pytest.mark.parametrize("name", ["v1.36.3-all", "v1.36.3-troubles", "v1.28.15-all"])
def test_findings_do_not_depend_on_the_parts(
    traces: Traces, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(traces.path(name))
    whole = _told(path)
    monkeypatch.setattr(findings, "_AT_ONCE_ROWS", 0)
    monkeypatch.setattr(facts_in_parts, "_PART_ROWS", 10)
    with closing(Session([path])) as session:
        parts = findings.parts_from(session)
        assert not isinstance(parts, OnePart)
        seen = [{job.namespace for job in part.jobs} for part in parts]
    assert len(seen) > 1
    assert sum(map(len, seen)) == len(set().union(*seen))  # no namespace is cut
    assert _told(path) == whole


@pytest.mark.full
def test_a_part_is_not_held_beside_the_next(
    traces: Traces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "_AT_ONCE_ROWS", 0)
    monkeypatch.setattr(facts_in_parts, "_PART_ROWS", 10)
    seen: list[ref[Job]] = []
    with closing(Session([str(traces.path("v1.36.3-all"))])) as session:
        parts = findings.parts_from(session)

        class Watched:
            whole = parts.whole

            def __iter__(self) -> Iterator[Facts]:
                for part in parts:
                    assert [job() for job in seen if job() is not None] == []
                    seen.extend(map(ref, part.jobs))
                    held = [part]
                    del part
                    yield held.pop()

        assert diagnose(Watched())
    assert len(seen) > 20
