"""What is missing from a list is gone only where the list has looked."""

from __future__ import annotations

import json

import pytest

from tests.support.watchlog import job
from tracekit.base.coverage import ALL, Scope
from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.reading.coverage import coverage_of
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.writer import TraceWriter


def _job(name, namespace):
    obj = job(name)
    meta = {**obj["metadata"], "namespace": namespace, "uid": f"{namespace}-{name}"}
    return {"apiVersion": "batch/v1", "kind": "Job", **obj, "metadata": meta}


def _listed(rv, *items):
    meta = {"resourceVersion": str(rv)}
    return json.dumps({"apiVersion": "v1", "kind": "List", "metadata": meta, "items": list(items)})


def _typed(rv, *items):
    meta = {"resourceVersion": str(rv)}
    found = {"apiVersion": "batch/v1", "kind": "JobList", "metadata": meta, "items": list(items)}
    return json.dumps(found)


def _gone(tmp_path, lines, kind="kubectl", scope=None):
    source, target = tmp_path / "source", tmp_path / "trace"
    source.write_text("\n".join(lines) + "\n")
    (result,) = import_files(ImportRequest([str(source)], target, kind=kind, scope=scope))
    rows = TraceReader(target).table(("uid",), types=["DELETED"]).to_pylist()
    assert len(rows) == result.synthesized
    return sorted(row["uid"] for row in rows), result.gaps


def test_lists_of_one_namespace_each_add_up(tmp_path) -> None:
    lines = [_listed(100, _job("x", name)) for name in "abc"]
    assert _gone(tmp_path, lines) == ([], 0)


@pytest.mark.parametrize(
    ("born", "gone"), [("2026-11-20T10:00:00Z", []), ("2026-11-20T10:00:30Z", ["a-x"])]
)
def test_lists_by_label_are_one_look_if_neither_can_have_asked_for_all(
    tmp_path, born: str, gone: list[str]
) -> None:
    """The second has an object that the first would have shown; one made later proves nothing."""

    def made(name: str, at: str, started: str) -> dict:
        obj = _job(name, "a")
        meta = {**obj["metadata"], "creationTimestamp": at}
        return {**obj, "metadata": meta, "status": {"startTime": started}}

    first = made("x", "2026-11-20T10:00:00Z", "2026-11-20T10:00:20Z")
    second = made("y", born, "2026-11-20T10:00:40Z")
    assert _gone(tmp_path, [_listed("", first), _listed("", second)])[0] == gone


def test_a_namespace_that_is_listed_again_says_what_is_gone_from_it(tmp_path) -> None:
    a, b = _job("x", "a"), _job("x", "b")
    lines = [_listed(100, a, _job("y", "a")), _listed(100, b), _listed(120, a)]
    assert _gone(tmp_path, lines) == (["a-y"], 1)


@pytest.mark.parametrize(
    ("scope", "gone"), [(None, []), (ALL, ["a-x"]), (Scope(frozenset("b")), [])]
)
def test_an_empty_list_covers_what_the_user_says(tmp_path, scope, gone) -> None:
    lines = [_typed(100, _job("x", "a")), _typed(120)]
    assert _gone(tmp_path, lines, scope=scope)[0] == gone


def _frames(rv, items, **envelope):
    bound = {"resourceVersion": str(rv)}
    common = {"recv": rv * 10**9, "resource": "jobs"}
    yield {**common, **envelope, "type": "LIST_BEGIN", "object": bound}
    for item in items:
        yield {**common, "type": "LIST", "object": item}
    yield {**common, "type": "LIST_END", "object": bound}


@pytest.mark.parametrize(
    ("envelope", "gone"),
    [({}, ["a-x", "b-x"]), ({"scope": "all"}, ["a-x", "b-x"]), ({"scope": "a"}, ["a-x"]),
     ({"scope": ["b"]}, ["b-x"]), ({"scope": []}, [])],
)  # fmt: skip
def test_a_watch_log_says_what_its_lists_asked_for(tmp_path, envelope, gone) -> None:
    frames = [*_frames(100, [_job("x", "a"), _job("x", "b")]), *_frames(120, [], **envelope)]
    assert _gone(tmp_path, map(json.dumps, frames), "watch")[0] == gone


_A, _B = [_job("x", "a"), _job("y", "a")], [_job("x", "b")]
_NEWS = [{"recv": 110 * 10**9, "resource": "jobs", "type": "MODIFIED", "object": _job("x", "a")}]


@pytest.mark.parametrize(
    ("frames", "gone"),
    [
        # One list a namespace, as people and bundles ask: each looks where it shows something.
        ([*_frames(100, _A), *_frames(101, _B)], []),
        ([*_frames(100, _A), *_frames(101, _B), *_frames(120, _A[:1])], ["a-y"]),
        ([*_frames(100, _A), *_frames(120, [])], []),
        # A list of several is of all, and so are the others; a watched stream has one scope.
        ([*_frames(100, _A + _B), *_frames(120, _B)], ["a-x", "a-y"]),
        ([*_frames(100, _A), *_NEWS, *_frames(120, [])], ["a-x", "a-y"]),
    ],
)
def test_a_list_of_unknown_scope_looks_where_it_shows_something(tmp_path, frames, gone) -> None:
    assert _gone(tmp_path, map(json.dumps, frames), "watch")[0] == gone


@pytest.mark.parametrize("said", [{"scope": Scope(frozenset("b"))}, {"scope": ALL}])
def test_what_the_user_says_is_kept_in_the_trace(tmp_path, said) -> None:
    _gone(tmp_path, map(json.dumps, _frames(100, _A)), "watch", **said)
    (span,) = coverage_of(TraceReader(tmp_path / "trace")).spans
    assert span.scope == said["scope"]


def test_the_scope_is_kept_in_the_trace(tmp_path) -> None:
    frames = _frames(100, [_job("x", "a")], scope="a")
    _gone(tmp_path, map(json.dumps, frames), "watch")
    rows = TraceReader(tmp_path / "trace").table(("raw",), types=["LIST_BEGIN"]).to_pylist()
    assert [json.loads(row["raw"])["scope"] for row in rows] == ["a"]


def test_each_list_of_a_namespace_costs_its_own_items_only(tmp_path, monkeypatch) -> None:
    """Nothing is written out or read again for a list after which all is still there."""
    flushes = []
    flush = TraceWriter.flush

    def counted(self, *args, **options):
        flushes.append(1)
        return flush(self, *args, **options)

    monkeypatch.setattr(TraceWriter, "flush", counted)
    few, many = (
        [_listed(100 + n, _job("x", f"space-{n}")) for n in range(size)] for size in (3, 60)
    )
    for number, lines in enumerate((few, many)):
        (tmp_path / str(number)).mkdir()
        assert _gone(tmp_path / str(number), lines) == ([], 0)
        flushes.append(0)
    first = flushes.index(0)
    assert flushes[:first] == flushes[first + 1 : -1]


def test_lists_of_one_revision_are_of_one_moment(tmp_path) -> None:
    """Pages of a long list, lists by label and copies: nothing has gone that one of them lacks."""
    pages = [
        _listed(9, _job("a", "ns"), _job("b", "ns")),
        _listed(9, _job("b", "ns"), _job("c", "ns")),
    ]
    assert _gone(tmp_path, pages) == ([], 0)
    reader = TraceReader(tmp_path / "trace")
    assert sorted(r["name"] for r in reader.table(("name",), types=["LIST"]).to_pylist()) == [
        "a",
        "b",
        "c",
    ]


_EARLY, _LATE = "2026-03-01T10:00:09Z", "2026-03-01T11:00:00Z"


def _cronjobs(rv):
    spec = {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": {"spec": {}}}}}
    meta = {"name": "load", "namespace": "a", "uid": "c", "resourceVersion": "1001",
            "creationTimestamp": "2026-02-01T10:00:00Z"}  # fmt: skip
    status = {"lastScheduleTime": "2026-03-01T10:00:00Z", "lastSuccessfulTime": _EARLY}
    item = {"metadata": meta, "spec": spec, "status": status}
    found = {"kind": "CronJobList", "apiVersion": "batch/v1", "items": [item]}
    return json.dumps(found | {"metadata": {"resourceVersion": rv}})


def _pods(rv, written):
    meta = {"name": "web", "namespace": "a", "uid": "p", "resourceVersion": written,
            "creationTimestamp": _LATE}  # fmt: skip
    item = {"metadata": meta, "spec": {"containers": []}, "status": {"phase": "Running"}}
    found = {"kind": "PodList", "apiVersion": "v1", "items": [item]}
    return json.dumps(found | {"metadata": {"resourceVersion": rv}})


@pytest.mark.parametrize(
    ("listed", "written", "seen_until"),
    [
        ("1010", "1400", _EARLY),  # the pod may have come after the CronJobs were listed
        ("1010", "900", _LATE),  # it was there by then
        ("1600", "1400", _LATE),
        ("", "1400", _LATE),  # of one command
    ],
)
def test_a_list_without_a_time_is_as_old_as_its_revision_tells(
    tmp_path, listed: str, written: str, seen_until: str
) -> None:
    folder = tmp_path / "lists"
    folder.mkdir()
    (folder / "cronjobs.json").write_text(_cronjobs(listed))
    (folder / "pods.json").write_text(_pods("1500", written))
    import_files(ImportRequest([str(folder)], tmp_path / "trace"))
    coverage = coverage_of(TraceReader(tmp_path / "trace"))
    found = coverage.seen_until("cronjobs", "a", coverage.end_ns)
    assert format_rfc3339(found) == seen_until
    assert format_rfc3339(coverage.seen_until("pods", "a", coverage.end_ns)) == _LATE
