"""`tracekit.open` and the accounts of Jobs and CronJobs."""

from __future__ import annotations

import pytest

import tracekit
from tracekit.api.results import html_table
from tracekit.base.errors import UsageError
from tracekit.base.time_input import TimeRange
from tracekit.report.html.data import report_data
from tracekit.trace.reading.reader import TraceReader

NAME = "v1.36.3-all"


@pytest.fixture(scope="module")
def trace(trace_path):
    return tracekit.open(trace_path(NAME))


def test_the_account_tells_what_was_waited_for(trace) -> None:
    narrative = trace.explain("t-backoff-limit/recovers")
    text = narrative.text()
    assert "rule: " not in text
    assert "back-off after 1 failures until" in narrative.text(verbose=True)
    assert "waits: back-off until 2026-11-21 05:42:55" in text
    assert narrative.closing.startswith("The Job ended")
    assert [s.at_ns for s in narrative.steps] == sorted(s.at_ns for s in narrative.steps)


def test_a_second_question_reads_the_rows_of_its_own_job_alone(trace, monkeypatch) -> None:
    """What is about every Job (leases, namespaces, the coverage) is read once, and kept.

    Events of its pods, refused calls for them and Kueue's Workloads name no Job: those are read of
    its namespace.
    """
    trace.explain("t-backoff-limit/recovers")
    asked = []

    def select(reader, selection, columns, _select=TraceReader.select):
        asked.append(selection)
        return _select(reader, selection, columns)

    monkeypatch.setattr(TraceReader, "select", select)
    tracekit.open(trace.path).explain("flaky")
    assert asked
    assert {one.namespace for one in asked if one.types != ("GAP",)} == {"t-backoff-limit"}
    no_job = [(one.streams, one.types) for one in asked if one.job != "flaky"]
    assert sorted(no_job, key=str) == [
        (("events",), None),
        (("jobs",), ("CALL",)),
        (("workloads",), None),
        (None, ("GAP",)),
    ]


def test_every_status_write_of_the_job_is_in_its_account(trace) -> None:
    history = trace.sql(
        "SELECT rv FROM actions WHERE action = 'status-update' AND job = 'recovers' "
        "AND namespace = 't-backoff-limit'"
    ).fetchall()
    told = {s.rv for s in trace.explain("t-backoff-limit/recovers").steps}
    assert told >= {max(rv for (rv,) in history)}


def test_an_account_up_to_a_time_ends_there(trace) -> None:
    narrative = trace.explain("t-backoff-limit/recovers", at="2026-11-21T05:42:50Z")
    assert narrative.steps
    assert narrative.steps[-1].at_ns < 1795239770 * 10**9
    before = narrative.within(TimeRange(until_ns=0))
    assert before.steps == []
    assert before.closing.startswith(
        "Nothing of this Job was recorded by 1970-01-01 00:00:00.000; "
    )


def test_what_others_did_is_told_in_words(trace) -> None:
    steps = trace.explain("t-indexed/idx").steps
    assert "deleted idx-0-7t26c" in [s.what for s in steps if s.who == "somebody else"]


@pytest.mark.full
def test_the_account_of_a_job_that_others_touched_names_the_evidence(trace) -> None:
    keys = trace.sql(
        "SELECT DISTINCT namespace || '/' || name FROM verdicts WHERE verdict = 'foreign' LIMIT 12"
    ).fetchall()
    for (key,) in keys:
        assert "[foreign]" in trace.explain(key).text()


def test_a_cronjob_tells_every_tick(trace) -> None:
    narrative = trace.explain("t-cronjobs/suspended")
    assert narrative.kind == "CronJob"
    ticks = [s.what.split(":")[0] for s in narrative.steps if s.who == "tick"]
    assert ticks[:2] == ["suspended", "started"]
    assert any(s.who == "cronjob-controller" and s.verdict == "match" for s in narrative.steps)


@pytest.mark.parametrize("key", ["nothing", "/x", "x/", "t-backoff-limit/onc"])
def test_an_unknown_key_is_one_sentence(trace, key: str) -> None:
    with pytest.raises(UsageError):
        trace.explain(key)


def test_close_names_are_suggested(trace) -> None:
    with pytest.raises(UsageError, match="did you mean t-backoff-limit/once"):
        trace.explain("t-backoff-limit/onc")


def test_a_wrong_time_is_one_sentence(trace) -> None:
    with pytest.raises(UsageError, match="no time"):
        trace.explain("t-backoff-limit/once", at="some day")


@pytest.mark.full
def test_replay_as_another_version_finds_what_changed(trace) -> None:
    assert trace.replay().divergences == []
    asked = {"version": "v1.28.15", "namespace": "t-backoff-limit"}
    assert trace.replay(**asked, search_all=True).divergences
    assert "the rules of v1.36.3" in trace.replay(**asked).misfit


#### Tables, reprs, ranges ####


def test_findings_come_as_objects_tables_and_the_document(trace) -> None:
    found = trace.diagnose(namespace="t-backoff-limit")
    assert [f.id for f in found] == found.to_arrow()["id"].to_pylist()
    assert [f.id for f in found] == list(found.to_pandas()["id"]) == list(found.to_polars()["id"])
    assert [f["id"] for f in found.document()["findings"]] == [f.id for f in found]
    assert found[0].id in found.text()
    assert len(found) == len(list(found))


def test_a_replay_comes_as_tables(trace) -> None:
    part = trace.replay(namespace="t-backoff-limit")
    table = part.to_arrow()
    assert len(part.to_pandas()) == len(part.to_polars()) == table.num_rows == len(part.verdicts)


def test_reprs_are_short_and_html_is_safe(trace) -> None:
    found, part = trace.diagnose(), trace.replay(namespace="t-backoff-limit")
    narrative = trace.explain("t-backoff-limit/recovers")
    for shown in (trace, found, found[0], part, part.verdicts[0], narrative):
        assert len(repr(shown)) < 300
        assert "\n" not in repr(shown)
    for shown in (trace, found, part, narrative):
        assert shown._repr_html_().startswith("<p")
    assert "&lt;b&gt;" in html_table("<b>", ["<i>"], [["<script>"]])
    assert "<script>" not in html_table("<b>", ["<i>"], [["<script>"]])


def test_a_range_chooses_what_is_shown(trace) -> None:
    whole = trace.replay()
    early = trace.replay(to="2026-11-21T05:43:00Z")
    late = trace.replay(from_="2026-11-21T05:43:00.000000001Z")
    assert early.verdicts + late.verdicts == whole.verdicts
    assert 0 < len(early.report.jobs) < len(whole.report.jobs)
    assert len(trace.diagnose(since="1s")) < len(trace.diagnose())
    steps = trace.explain("t-backoff-limit/recovers").steps
    cut = trace.explain("t-backoff-limit/recovers", from_=steps[1].at_ns, to=steps[3].at_ns).steps
    assert cut == steps[1:4]


def test_a_closed_trace_answers_again(trace_path) -> None:
    with tracekit.open(trace_path(NAME)) as opened:
        assert opened.jobs().num_rows > 10
    assert opened.jobs().num_rows > 10


@pytest.mark.full
def test_what_came_of_a_job_follows_from_its_own_rows(trace) -> None:
    jobs = report_data(trace._session())["jobs"]
    whole = {(j["namespace"], j["job"]): j["account"]["opening"] for j in jobs if j["account"]}
    assert len(whole) > 60
    for (namespace, name), said in list(whole.items())[::6]:
        opening = trace.explain(f"{namespace}/{name}").opening
        assert opening.startswith(said)
        assert said
