"""What was found in a trace is kept beside its verdicts, and is what would be found again."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

import tracekit
import tracekit.sql.findings as room
from tests.support.traces import ROOT
from tracekit.answers.findings.baseline import Baseline
from tracekit.answers.findings.diagnosis import Diagnosed, Wanted, diagnosed, wanted_selector
from tracekit.answers.parts import Parts
from tracekit.report.conclusion import conclusion
from tracekit.report.narrative import Narrative
from tracekit.sql.findings import diagnosis_of, findings_of, parts_from
from tracekit.sql.session import Session
from tracekit.versions.overrides import AskedRules

_TRACE = ROOT / "traces" / "incidents" / "finalizer-left"


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Session]:
    """The sessions whose objects were looked at, on a machine that has kept nothing."""
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    sessions: list[Session] = []

    def noted(session: Session) -> Parts:
        sessions.append(session)
        return parts_from(session)

    monkeypatch.setattr(room, "parts_from", noted)
    return sessions


def asked(path: Path, rules: AskedRules | None = None) -> Diagnosed:
    with closing(Session([path], rules=rules)) as session:
        return diagnosis_of(session)


def test_what_was_kept_is_what_is_found(looks: list[Session]) -> None:
    first, again = asked(_TRACE), asked(_TRACE)
    assert len(looks) == 1
    assert again == first
    with closing(Session([_TRACE])) as session:
        assert diagnosed(parts_from(session)) == again
    assert again.cases


def test_another_place_of_the_same_trace_has_it_too(looks: list[Session], tmp_path: Path) -> None:
    first = asked(_TRACE)
    shutil.copytree(_TRACE, tmp_path / "copy")
    assert asked(tmp_path / "copy") == first
    assert len(looks) == 1


def test_other_rules_find_other_things(looks: list[Session]) -> None:
    first = asked(_TRACE)
    others = asked(_TRACE, AskedRules(kubernetes_version="v1.22.0"))
    assert len(looks) == 2
    assert others != first


def test_labels_and_baselines_ask_the_objects(looks: list[Session]) -> None:
    asked(_TRACE)
    with closing(Session([_TRACE])) as session:
        everything = findings_of(session)
        assert len(looks) == 1
        none = findings_of(session, Wanted(selector=wanted_selector("nobody=has-it")))
        assert len(looks) == 2
        assert len(none) < len(everything)
        assert findings_of(session, baseline=Baseline(())) == everything
        assert len(looks) == 3


def test_a_damaged_trace_is_not_told_from_what_was_kept(
    looks: list[Session], tmp_path: Path
) -> None:
    shutil.copytree(_TRACE, tmp_path / "trace")
    asked(tmp_path / "trace")
    segment = next((tmp_path / "trace").rglob("*.parquet"))
    content = bytearray(segment.read_bytes())
    content[len(content) // 3] ^= 0xFF
    segment.write_bytes(content)
    with closing(Session([tmp_path / "trace"])) as session:
        assert session.problems
        assert diagnosis_of(session).not_judged is None
    assert len(looks) == 2


def test_what_an_account_begins_with_is_kept(
    looks: list[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    del looks
    concluded: list[str] = []

    def noted(session: Session, narrative: Narrative) -> str:
        concluded.append(narrative.name)
        return conclusion(session, narrative)

    monkeypatch.setattr("tracekit.api.concluding.conclusion", noted)
    with tracekit.open(_TRACE) as trace:
        job = trace.sql("SELECT namespace || '/' || job FROM jobs ORDER BY 1").fetchall()[0][0]
        first, again = trace.explain(job), trace.explain(job)
        assert (again.opening, again.findings) == (first.opening, first.findings)
        assert str(again) == str(first)
        assert len(concluded) == 1
        trace.explain(job, from_="-1h")  # of a part the sentence may be another
        trace.explain(job, version="v1.22.0")
    assert len(concluded) == 3


def test_what_was_kept_and_changed_is_found_anew(looks: list[Session], tmp_path: Path) -> None:
    first = asked(_TRACE)
    (kept,) = (tmp_path / "cache" / "facts").glob("cases-*")
    kept.write_bytes(kept.read_bytes().replace(b"TK", b"TZ"))
    assert asked(_TRACE) == first
    assert len(looks) == 2
