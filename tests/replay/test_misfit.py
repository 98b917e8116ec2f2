"""A record that contradicts the rules as a whole is one finding, and costs no more than a few Jobs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any
from zlib import crc32

import orjson
import pytest
from msgspec.structs import replace

from tests.support.judged_rows import judge_of
from tests.support.traces import TRACES, import_log, json_lines
from tracekit.check.diff.alternative_readings import judge_as_known
from tracekit.check.diff.judge import KeyJudgement
from tracekit.check.diff.report import DiffReport
from tracekit.check.replay.attempts import ATTEMPTS_UNSEARCHED, Attempts
from tracekit.check.replay.history import History
from tracekit.check.replay.run_context import RunContext
from tracekit.check.replay.search import KeyWalker
from tracekit.check.replay.search_state import State
from tracekit.check.verdict import Judgement, Reason, Verdict
from tracekit.cli.main import main
from tracekit.judge.engine import Engine
from tracekit.judge.judged import Asked, Judge, resolve_era
from tracekit.judge.misfit import CONTRADICTING, SAMPLE, Systematic
from tracekit.report.replay import exit_status
from tracekit.sql.findings import findings_of
from tracekit.sql.session import Session
from tracekit.trace.reading.reader import TraceReader
from tracekit.versions.overrides import AskedRules

NAME, OTHER = "v1.28.15-all", "v1.36.3"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("misfit") / "trace"
    import_log(TRACES / NAME / "watch.jsonl.zst", place, TRACES / NAME)
    return place


@contextmanager
def _attempts() -> Iterator[list[int]]:
    """How many syncs are tried."""
    made, counted = Attempts.attempt, [0]

    def attempt(self: Attempts, *args: object) -> object:
        counted[0] += 1
        return made(self, *args)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Attempts, "attempt", attempt)
        yield counted


@cache
def _judged(trace: Path, version: str | None) -> tuple[DiffReport, int]:
    reader = TraceReader(trace)
    with _attempts() as counted:
        report = Judge(reader, resolve_era(reader, version, None)).report()
    return report, counted[0]


def test_a_record_that_fits_has_none(trace: Path) -> None:
    report, _ = _judged(trace, None)
    assert report.misfit == ""
    assert report.divergences == []


def test_the_sample_is_searched_once(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: Counter[tuple[str, str]] = Counter()

    def judged(history: History, *args: Any) -> KeyJudgement:
        searched[history.namespace, history.name] += 1
        return judge_as_known(history, *args)

    monkeypatch.setattr("tracekit.check.diff.trace.judge_as_known", judged)
    reader = TraceReader(trace)
    judge = Judge(reader, resolve_era(reader, None, None))
    judge.tally()
    assert set(judge.objects.jobs) <= searched.keys()
    assert set(searched.values()) == {1}


def test_other_rules_are_one_finding_that_names_those_that_fit(trace: Path) -> None:
    report, _ = _judged(trace, OTHER)
    assert "contradict the rules of v1.36.3" in report.misfit
    assert "fit the rules of v1.28.15, which the trace names" in report.misfit
    assert "--kubernetes-version v1.28.15" in report.misfit


def test_what_is_not_searched_is_unknowable_and_never_a_divergence(trace: Path) -> None:
    report, _ = _judged(trace, OTHER)
    of_jobs = [j for j in report.judgements if j.controller == "job"]
    hidden = [j for j in of_jobs if j.reason is Reason.MISFIT]
    told = {(j.object.namespace, j.object.name) for j in of_jobs if j.divergent}
    assert 0 < len(told) <= SAMPLE
    assert {(j.object.namespace, j.object.name) for j in hidden}.isdisjoint(told)
    [(verdict, why)] = {(j.verdict, j.why) for j in hidden}
    assert verdict is Verdict.UNKNOWABLE
    assert report.misfit.startswith(why)


def test_it_costs_a_few_jobs_and_no_more(trace: Path) -> None:
    """Each Job searched to its bound takes 27 times as many attempts as where the rules fit."""
    _, clean = _judged(trace, None)
    _, misfit = _judged(trace, OTHER)
    assert misfit < 10 * clean


@pytest.mark.full
def test_streams_that_were_late_take_all_divergences(trace: Path) -> None:
    reader = TraceReader(trace)
    engine = Engine(reader, resolve_era(reader, OTHER, None))
    engine._plain_context = replace(engine._plain_context, late=((0, 1 << 62),))
    report = DiffReport(0)
    engine.found(report, ["job"])
    assert "streams came late" in report.misfit
    assert report.divergences == []


@pytest.mark.full
def test_divergences_that_a_record_does_not_bear_are_searched_for_less_long(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of a sample contradicts the rules, and nothing of it is told: so it is of the others."""
    allowed: dict[tuple[str, str], set[int]] = defaultdict(set)
    made = KeyWalker.allowance

    def allowance(self: KeyWalker, dead: State) -> int:
        found = made(self, dead)
        allowed[self.history.namespace, self.history.name].add(found)
        return found

    def not_borne(_: Engine, judgement: Judgement, __: RunContext) -> Judgement:
        return replace(judgement, verdict=Verdict.UNKNOWABLE, reason=Reason.NOT_RECORDED, fields=())

    monkeypatch.setattr(KeyWalker, "allowance", allowance)
    monkeypatch.setattr(Engine, "_by_this_record", not_borne)
    reader = TraceReader(trace)
    engine = Engine(reader, resolve_era(reader, OTHER, None))
    report = DiffReport(0)
    engine.found(report, ["job"])
    assert engine.misfit is None
    assert report.divergences == []
    sample = engine.sample.unborne or frozenset()
    assert CONTRADICTING <= len(sample) <= SAMPLE
    assert max(chain.from_iterable(allowed[key] for key in sample)) > ATTEMPTS_UNSEARCHED
    others = {key: most for key, most in allowed.items() if key not in sample}
    assert others
    assert set(chain.from_iterable(others.values())) == {ATTEMPTS_UNSEARCHED}


@pytest.mark.full
def test_each_verb_says_it(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(verb: str, *words: str, status: int = 1) -> str:
        asked = [verb, str(trace), "--kubernetes-version", OTHER, *words]
        with pytest.raises(SystemExit) as ended:
            main(asked)
        assert (ended.value.code or 0) == status
        return capsys.readouterr().out

    why = _judged(trace, OTHER)[0].misfit
    document = said("replay", "--diff", "-o", "json")
    assert orjson.loads(document)["misfit"] == why
    assert document == said("replay", "--diff", "-o", "json", "--processes", "2")
    for output in ("table", "junit", "sarif"):
        assert why in said("replay", "--diff", "-o", output)
    findings = orjson.loads(said("diagnose", "-o", "json", status=0))["findings"]
    assert [f["evidence"][0]["detail"] for f in findings if f["id"] == "TK907"] == [why]


@pytest.mark.parametrize("each", [10, 1])
def test_a_lie_in_each_tenth_job_is_no_misfit_and_one_in_each_is(each: int) -> None:
    """The lie is of a status that counts one more active pod than there is."""
    lied = set[str]()
    rows = []
    for row in json_lines(TRACES / NAME / "watch.jsonl.zst"):
        told = row
        if row["resource"] == "jobs" and row["type"] == "MODIFIED":
            obj = row["object"]
            name, status = obj["metadata"]["name"], obj.get("status") or {}
            if status.get("active") and crc32(name.encode()) % each == 0:
                lied.add(name)
                status = {**status, "active": status["active"] + 1}
                told = {**row, "object": {**obj, "status": status}}
        rows.append(told)
    with judge_of(rows, NAME) as judge:
        report = judge.report()
    found = {judgement.object.name for judgement in report.divergences}
    if each == 1:
        assert "the controllers may not be upstream's" in report.misfit
        assert 0 < len(found) <= SAMPLE
    else:
        assert report.misfit == ""
        assert lied <= found


@pytest.mark.parametrize(
    ("name", "version"), [("v1.36.3-twins", "v1.20.0"), ("v1.25.4-twins", "v1.36.3")]
)
def test_a_record_of_few_jobs_is_one_finding_too(name: str, version: str, tmp_path: Path) -> None:
    """All are searched, and none becomes unknowable for it."""
    reader = import_log(TRACES / name / "watch.jsonl.zst", tmp_path / "trace", name)
    report = Judge(reader, resolve_era(reader, version, None)).report()
    recorded = name.removesuffix("-twins")
    assert report.misfit.startswith(f"15 of the 15 Jobs contradict the rules of {version}")
    assert f"All 4 that were asked fit the rules of {recorded}, which the trace" in report.misfit
    assert f"--kubernetes-version {recorded}" in report.misfit
    rules = AskedRules(kubernetes_version=version)
    with closing(Session([str(tmp_path / "trace")], rules=rules)) as session:
        [found] = [f for f in findings_of(session) if f.id == "TK907"]
    assert found.cases[0].detail == report.misfit
    assert not any(judgement.reason is Reason.MISFIT for judgement in report.judgements)
    assert len({(j.object.namespace, j.object.name) for j in report.divergences}) == 15


@pytest.mark.full
def test_cron_jobs_that_contradict_the_rules_are_one_finding() -> None:
    """Each Job of theirs has an annotation that no rule gives it; all other Jobs fit."""
    rows = []
    for row in json_lines(TRACES / "v1.36.3-restart" / "watch.jsonl.zst"):
        meta = row["object"].get("metadata") or {}
        if row["resource"] == "jobs" and any(
            owner["kind"] == "CronJob" for owner in meta.get("ownerReferences", ())
        ):
            meta = {**meta, "annotations": {**meta.get("annotations", {}), "lied": "yes"}}
        rows.append({**row, "object": {**row["object"], "metadata": meta}})
    with judge_of(rows, "v1.36.3-restart") as judge:
        report = judge.report()
        of_jobs = judge.report(Asked(controllers=("job",)))
    assert {j.controller for j in report.divergences} == {"cronjob"}
    assert "6 of the 6 CronJobs contradict the rules of v1.36.3" in report.misfit
    assert "(different job-create in metadata.annotations.lied)" in report.misfit
    assert "the controllers may not be upstream's" in report.misfit
    assert of_jobs.misfit == report.misfit


def test_so_is_a_ttl_that_is_never_kept(trace: Path) -> None:
    """The record fits, so that any rules do by which its deletions are looked at once more."""
    reader = TraceReader(trace)
    engine = Engine(reader, resolve_era(reader, None, None))
    report = DiffReport(0)
    engine.found(report, ["ttl"])
    kept, late = Systematic(), Systematic()
    for judgement in report.judgements:
        kept.take(judgement)
        late.take(replace(judgement, verdict=Verdict.LATE))
    asked = engine.era, engine.run_context, engine._sources(engine.run_context)
    assert list(kept.whys(*asked, sampled=True)) == []
    [why] = late.whys(*asked, sampled=True)
    assert why.startswith("4 of the 4 Jobs with a TTL contradict the rules of v1.28.15, 4 of them")
    assert "All 4 that were asked fit the rules" in why


@pytest.mark.parametrize(
    ("divergent", "misfit", "exit_zero", "status"),
    [
        (False, False, False, 0),
        (True, True, False, 1),
        (True, False, True, 0),
        (False, True, False, 2),
        (False, True, True, 2),
    ],
)
def test_what_was_not_judged_is_never_clean(
    *, divergent: bool, misfit: bool, exit_zero: bool, status: int
) -> None:
    assert exit_status(divergent=divergent, misfit=misfit, exit_zero=exit_zero) == status
