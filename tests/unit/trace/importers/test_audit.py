"""Traces out of audit logs alone, beside what a watch of the same time saw."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.support.watchlog import job, pod
from tests.unit.trace.importers.audit_logs import START_NS, TRACES, entry, header_of, shipped, write
from tracekit.base.errors import TraceFormatError
from tracekit.check.verdict import Verdict
from tracekit.judge.judged import Judge, resolve_era
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.reading.reader import TraceReader

SAMPLES = ("v1.17.17-all", "v1.23.17-all", "v1.36.3-all", "v1.36.3-restart")


def imported(tmp_path, *names, kind=None, others=(), header=None):
    target = tmp_path / "trace"
    results = import_files(
        ImportRequest([str(n) for n in names], target, header or TraceHeader(), kind, others)
    )
    return TraceReader(target), results


@pytest.fixture(scope="module", params=SAMPLES)
def both(request, tmp_path_factory):
    """The trace of an audit log alone, and that of the watch of the same cluster and time."""
    place, name = tmp_path_factory.mktemp("audit"), request.param
    traces = []
    for kind in ("audit", "watch"):
        header = header_of(name)
        import_files(
            ImportRequest([str(TRACES / name / f"{kind}.jsonl.zst")], place / kind, header, kind)
        )
        traces.append(TraceReader(place / kind))
    return traces


def states(reader, stream, *types):
    rows = reader.table(("uid", "rv", "type", "raw", "derived_from"), streams=[stream], types=types)
    return rows.to_pylist()


class TestBesideTheWatch:
    def test_every_job_and_cronjob_revision_is_there_and_the_same(self, both):
        audit, watch = both
        for stream in ("jobs", "cronjobs"):
            seen = {
                r["rv"]: json.loads(r["raw"]) for r in states(watch, stream, "ADDED", "MODIFIED")
            }
            told = {
                r["rv"]: json.loads(r["raw"]) for r in states(audit, stream, "ADDED", "MODIFIED")
            }
            assert told.keys() == seen.keys()
            for rv, obj in seen.items():
                assert told[rv]["spec"] == obj["spec"]
                told[rv]["metadata"].pop("selfLink", None)  # names the path that was asked for
                obj["metadata"].pop("selfLink", None)
                assert told[rv]["metadata"] == obj["metadata"]
                assert told[rv].get("status", {}) == obj.get("status", {})

    def test_the_same_objects_come_and_go(self, both):
        audit, watch = both
        for stream in ("jobs", "cronjobs", "pods"):
            for kind in ("ADDED", "DELETED"):
                told = sorted(r["uid"] for r in states(audit, stream, kind))
                assert told == sorted(r["uid"] for r in states(watch, stream, kind))

    def test_what_is_put_together_is_marked_and_bounds_the_truth(self, both):
        audit, watch = both
        columns = ("uid", "rv", "type", "node_name", "rv_after", "rv_before", "synthesized",
                   "derived_from", "deletion_grace_s")  # fmt: skip
        seen = {}
        for row in watch.table(columns, streams=["pods"]).to_pylist():
            seen.setdefault(row["uid"], []).append(row)
        kinds = Counter()
        for row in audit.table(columns, streams=["pods"]).to_pylist():
            assert row["synthesized"] == (row["derived_from"] is not None)
            if row["rv_after"] is None:
                continue
            kinds[row["derived_from"]] += 1
            low, high = row["rv_after"], row["rv_before"]
            assert low < row["rv"]
            between = [
                r for r in seen[row["uid"]] if low < r["rv"] and (high is None or r["rv"] < high)
            ]
            assert between, row
            if row["derived_from"] == "binding":
                assert any(r["node_name"] == row["node_name"] for r in between)
        assert kinds["binding"] > 50

    def test_no_divergence_and_nearly_all_explained(self, both):
        audit, _ = both
        report = Judge(audit, resolve_era(audit, None, None)).report()
        assert report.divergences == []
        verdicts = Counter(j.verdict for j in report.judgements)
        unknowable = verdicts[Verdict.UNKNOWABLE]
        assert unknowable <= 0.05 * sum(verdicts.values())
        assert verdicts[Verdict.MATCH] > 300

    def test_who_did_it_is_said(self, both):
        audit, _ = both
        report = Judge(audit, resolve_era(audit, None, None)).report()
        foreign = [j for j in report.judgements if j.verdict is Verdict.FOREIGN]
        assert foreign
        assert all("the audit log names " in j.why for j in foreign)

    def test_the_version_and_what_is_missing_are_said(self, both):
        audit, watch = both
        known = watch.header.kubernetes_version
        assert audit.header.kubernetes_version is not None
        assert known in (None, audit.header.kubernetes_version)
        assert audit.header.streams["events"]["recorded"] is False
        assert audit.header.sessions[-1]["report"]["kind"] == "audit"


@pytest.mark.full
def test_with_the_watch_every_row_learns_who_wrote_it(tmp_path):
    place = TRACES / "v1.28.15-all"
    reader, _ = imported(
        tmp_path, place / "watch.jsonl.zst", others=[str(place / "audit.jsonl.zst")]
    )
    columns = ("stream", "type", "actor", "rv", "uid", "verb")
    rows = reader.table(columns, streams=["jobs", "pods", "cronjobs"]).to_pylist()
    written = [r for r in rows if r["type"] in ("ADDED", "MODIFIED", "DELETED")]
    evicted = {r["uid"] for r in written if r["verb"] == "create/eviction"}
    nameless = [r for r in written if not r["actor"]]
    # An eviction writes the pod's condition first; its answer tells neither of its two writes.
    assert [r["uid"] for r in nameless] == list(evicted)
    keys = [(r["stream"], r["rv"], r["type"]) for r in written]
    assert len(keys) == len(set(keys)), "the same revision is one observation"
    report = Judge(reader, resolve_era(reader, None, None)).report()
    assert report.divergences == []
    assert "events" not in reader.header.streams


@pytest.fixture
def log(tmp_path):
    return lambda *entries: write(tmp_path / "audit.log", list(entries))


def created(at_s=0.0, rv=10):
    return entry("create", "jobs", "three", at_s=at_s, response=job(rv=rv), code=201, user="admin")


def test_any_order_and_twice_is_the_same_trace(tmp_path):
    lines = shipped("v1.36.3-restart")
    first, second = tmp_path / "a.log", tmp_path / "b.log"
    first.write_bytes(b"\n".join(reversed(lines[500:])) + b"\n")
    second.write_bytes(b"\n".join(lines[:900]) + b"\n")
    whole = tmp_path / "whole.log"
    whole.write_bytes(b"\n".join(lines) + b"\n")
    columns = ("stream", "type", "rv", "uid", "recv_ns", "actor")
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    mixed, results = imported(tmp_path / "1", first, second, kind="audit")
    plain, _ = imported(tmp_path / "2", whole, kind="audit")
    key = lambda r: [str(r[c]) for c in columns]  # noqa: E731
    assert sorted(mixed.table(columns).to_pylist(), key=key) == sorted(
        plain.table(columns).to_pylist(), key=key
    )
    assert results[0].calls["logged twice, left out"] > 0


def test_refused_calls_are_kept_and_explain_what_is_not_there(tmp_path, log):
    refused = entry("create", "pods", None, at_s=1, code=403, request=pod())
    reader, _ = imported(tmp_path, log(created(), refused))
    (call,) = reader.table(("job", "code", "actor", "verb", "stream"), types=["CALL"]).to_pylist()
    assert call == {
        "job": "three", "code": 403, "actor": refused["user"]["username"], "verb": "create",
        "stream": "pods",
    }  # fmt: skip


def test_a_call_without_bodies_is_json_all_the_same(tmp_path, log):
    bare = entry("patch", "jobs", "three", at_s=1, level="Metadata")
    reader, _ = imported(tmp_path, log(created(), bare))
    (call,) = reader.table(("raw",), types=["CALL"]).to_pylist()
    assert json.loads(call["raw"])["verb"] == "patch"


def test_dry_runs_and_other_stages_make_nothing(tmp_path, log):
    dry = entry("create", "jobs", "dry", at_s=1, response=job("dry", 11), uri="/x?dryRun=All")
    begun = entry("create", "jobs", "two", at_s=2, response=job("two", 12), stage="RequestReceived")
    reader, results = imported(tmp_path, log(created(), dry, begun))
    assert [r["name"] for r in reader.table(("name",), streams=["jobs"]).to_pylist()] == ["three"]
    assert results[0].calls["dry runs, left out"] == 1


def test_a_name_that_is_given_again_ends_the_object_before(tmp_path, log):
    again = job(rv=20)
    again["metadata"]["uid"] = "another"
    reader, _ = imported(
        tmp_path, log(created(), entry("create", "jobs", "three", at_s=5, response=again, code=201))
    )
    rows = reader.table(("uid", "type", "rv"), streams=["jobs"]).to_pylist()
    assert [(r["uid"], r["type"]) for r in sorted(rows, key=lambda r: r["rv"])] == [
        ("uid-three", "ADDED"),
        ("uid-three", "DELETED"),
        ("another", "ADDED"),
    ]


def test_writes_without_a_body_are_a_gap_and_the_next_state_is_a_look(tmp_path, log):
    unseen = entry("patch", "jobs", "three", at_s=5, level="Metadata")
    seen = entry("update", "jobs", "three", at_s=9, subresource="status", response=job(rv=30))
    reader, results = imported(tmp_path, log(created(), unseen, seen))
    types = [r["type"] for r in reader.table(("type",), streams=["jobs"]).to_pylist()]
    assert types == ["ADDED", "GAP", "CALL", "LIST"]
    assert results[0].gaps == 1


def test_a_log_that_begins_late_shows_looks(tmp_path, log):
    reader, _ = imported(
        tmp_path,
        log(entry("update", "jobs", "three", subresource="status", response=job(rv=30))),
    )
    assert [r["type"] for r in reader.table(("type",)).to_pylist()] == ["LIST"]


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([entry("list", "jobs", "")], "no write to a Job"),
        ([entry("create", "services", "x")], "none is about the API group batch"),
        (
            [created(), entry("create", "jobs", "b", at_s=1, response=job("b", 10), code=201)],
            "of two clusters",
        ),
    ],
)
def test_logs_that_tell_nothing_are_refused_in_a_sentence(tmp_path, log, entries, words):
    with pytest.raises(TraceFormatError, match=words):
        imported(tmp_path, log(*entries), kind="audit")


def test_a_half_line_is_said(tmp_path, log):
    path = log(created())
    path.write_bytes(path.read_bytes() + b'{"kind":"Event","auditID":"x","stage":"Resp')
    _, results = imported(tmp_path, path, kind="audit")
    assert any("is cut off" in problem for problem in results[0].problems)


def test_of_another_kind_is_said(tmp_path):
    watch = TRACES / "v1.36.3-restart" / "watch.jsonl.zst"
    with pytest.raises(TraceFormatError, match="is no audit source but watch"):
        imported(tmp_path, watch, kind="audit")


@pytest.mark.parametrize("name", ["v1.28.15-all", "v1.36.3-all"])
@pytest.mark.parametrize("part", [3, 2])
def test_a_log_that_begins_midway_accuses_nobody(tmp_path, name, part):
    lines = shipped(name)
    path = tmp_path / "late.log"
    path.write_bytes(b"\n".join(lines[len(lines) // part :]) + b"\n")
    reader, _ = imported(tmp_path, path, kind="audit")
    report = Judge(reader, resolve_era(reader, None, None)).report()
    assert report.divergences == []
    verdicts = Counter(j.verdict for j in report.judgements)
    assert verdicts[Verdict.UNKNOWABLE] <= 0.1 * sum(verdicts.values())
    unknowable = [j for j in report.judgements if j.verdict is Verdict.UNKNOWABLE]
    assert any("was there before the record began" in j.why for j in unknowable)


def as_providers_log(line):
    """A line as the policies of GKE and EKS have it: of a kubelet's writes the request only."""
    found = json.loads(line)
    ref = found.get("objectRef") or {}
    if (ref.get("resource"), ref.get("subresource")) == ("pods", "status"):
        found["level"] = "Request"
        found.pop("responseObject", None)
    return found


@pytest.mark.parametrize("name", ["v1.17.17-all", "v1.28.15-all", "v1.37.1-all"])
def test_what_kubelets_sent_is_as_good_as_what_they_were_answered(tmp_path, name, log):
    place = TRACES / name / "audit.jsonl.zst"
    (tmp_path / "full").mkdir()
    full, _ = imported(tmp_path / "full", place, header=header_of(name))
    sent = log(*map(as_providers_log, shipped(name)))
    reader, results = imported(tmp_path, sent, header=header_of(name))
    assert results[0].derived["patch"] > 100
    told, seen = (
        sorted(
            json.dumps(row, default=str)
            for row in trace.table(
                ("uid", "phase", "containers", "type"), streams=["pods"]
            ).to_pylist()
            if row["type"] != "CALL"
        )
        for trace in (reader, full)
    )
    assert told == seen
    report = Judge(reader, resolve_era(reader, None, None)).report()
    assert report.divergences == []
    verdicts = Counter(j.verdict for j in report.judgements)
    assert verdicts[Verdict.UNKNOWABLE] <= 0.05 * sum(verdicts.values())


def test_an_evicted_pod_that_had_ended_goes_with_its_last_finalizer(tmp_path, log):
    """The answer to the patch has the revision of the mark, which no other answer tells."""
    ended = pod(rv=20)
    ended["metadata"]["finalizers"] = ["batch.kubernetes.io/job-tracking"]
    ended["status"] = {"phase": "Succeeded"}
    gone = json.loads(json.dumps(ended))
    mark = {"deletionTimestamp": "2026-11-21T05:42:44Z", "deletionGracePeriodSeconds": 0}
    gone["metadata"] |= {"resourceVersion": "23", **mark}
    del gone["metadata"]["finalizers"]
    name = ended["metadata"]["name"]
    reader, _ = imported(
        tmp_path,
        log(
            created(),
            entry("create", "pods", name, at_s=1, response=ended, code=201),
            entry("create", "pods", name, at_s=2, subresource="eviction", code=201, user="alice",
                  response={"kind": "Status", "status": "Success"}),
            entry("patch", "pods", name, at_s=5, response=gone),
        ),
    )  # fmt: skip
    rows = reader.table(("type", "rv", "actor"), streams=["pods"]).to_pylist()
    assert [(r["type"], r["rv"]) for r in rows[:2]] == [("ADDED", 20), ("MODIFIED", 23)]
    assert rows[1]["actor"] == "alice"
    assert rows[2]["type"] == "DELETED"
    assert rows[2]["rv"] > 23


def test_the_second_who_takes_the_last_finalizer_makes_nothing(tmp_path, log):
    """Both are answered with the object at the revision of its mark; one has ended it."""
    ended = pod(rv=20)
    name = ended["metadata"]["name"]
    ended["metadata"]["finalizers"] = ["batch.kubernetes.io/job-tracking"]
    marked = json.loads(json.dumps(ended))
    marked["metadata"] |= {"resourceVersion": "23", "deletionTimestamp": "2026-11-21T05:42:44Z",
                           "deletionGracePeriodSeconds": 0}  # fmt: skip
    gone = json.loads(json.dumps(marked))
    del gone["metadata"]["finalizers"]
    path = log(
        created(),
        entry("create", "pods", name, at_s=1, response=ended, code=201),
        entry("delete", "pods", name, at_s=2, response=marked, user="collector"),
        entry("patch", "pods", name, at_s=3, response=gone, audit_id="one"),
        entry("patch", "pods", name, at_s=3.1, response=gone, audit_id="two"),
        entry("get", "pods", name, at_s=3.2, response=marked, user="late reader"),
    )
    reader, results = imported(tmp_path, path)
    rows = reader.table(("type", "rv", "actor"), streams=["pods"]).to_pylist()
    assert [r["type"] for r in rows] == ["ADDED", "MODIFIED", "DELETED", "CALL"]
    assert rows[1]["actor"] == "collector"
    assert results[0].calls["without effect: it was gone already"] == 1


def test_who_reads_an_object_is_not_said_to_have_written_it(tmp_path, log):
    watch = tmp_path / "watch.jsonl"
    rows = [
        {"recv": START_NS + at_s * 10**9, "resource": "jobs", "type": kind, "object": obj}
        for at_s, kind, obj in ((0, "ADDED", job(rv=10)), (5, "MODIFIED", job(rv=30)))
    ]
    watch.write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = log(
        created(),
        entry("get", "jobs", "three", at_s=6, response={"kind": "Job", **job(rv=30)}, user="bob"),
    )
    reader, _ = imported(tmp_path, watch, others=[str(path)])
    told = reader.table(("rv", "actor"), streams=["jobs"], types=["ADDED", "MODIFIED"]).to_pylist()
    assert [(r["rv"], r["actor"]) for r in told] == [(10, "admin"), (30, None)]


class TestRequestLevel:
    """Of updates the whole object is sent, with the revision that it was made on."""

    def body(self, rv, **status):
        return {"kind": "Job", **job(rv=rv), "status": status}

    def states(self, tmp_path, *entries):
        path = write(tmp_path / "audit.log", list(entries))
        reader, _ = imported(tmp_path, path)
        columns = ("type", "rv", "rv_after", "derived_from", "active", "succeeded")
        rows = reader.table(columns, streams=["jobs"]).to_pylist()
        return [row for row in rows if row["type"] != "GAP"], reader

    def test_each_update_tells_the_revision_of_the_one_before(self, tmp_path):
        rows, reader = self.states(
            tmp_path,
            entry("create", "jobs", "three", code=201, level="Request", request={"kind": "Job"}),
            *(
                entry("update", "jobs", "three", subresource="status", at_s=at_s, level="Request",
                      request=self.body(rv, **status))
                for at_s, rv, status in (
                    (1, 10, {"active": 3}), (2, 14, {"active": 1, "succeeded": 2}),
                )
            ),
        )  # fmt: skip
        assert [(r["type"], r["rv"], r["active"]) for r in rows[:2]] == [
            ("ADDED", 10, None), ("MODIFIED", 14, 3),
        ]  # fmt: skip
        assert rows[2]["succeeded"] == 2
        assert rows[2]["rv"] > 14
        assert [r["derived_from"] for r in rows] == ["create", "update", "update"]
        assert reader.header.streams["pods"]["recorded"] is False

    def test_nothing_is_red_without_the_pods(self, tmp_path):
        _, reader = self.states(
            tmp_path,
            entry("create", "jobs", "three", code=201, level="Request", request={"kind": "Job"}),
            entry("update", "jobs", "three", subresource="status", at_s=1, level="Request",
                  request=self.body(10, active=3)),
        )  # fmt: skip
        report = Judge(reader, resolve_era(reader, None, None)).report()
        assert report.divergences == []
        assert any("pods are not recorded" in j.why for j in report.judgements)


def test_a_log_of_which_no_entry_can_be_read_is_not_said_to_be_no_audit_log(tmp_path):
    """It is recognised as one: what is wrong with its entries is said."""
    odd = json.dumps({**entry("create", "jobs", "j"), "objectRef": 7})
    path = tmp_path / "audit.log"
    path.write_text(odd + "\n")
    for kind in (None, "audit"):
        with pytest.raises(TraceFormatError) as refused:
            import_files(ImportRequest([str(path)], tmp_path / "trace", kind=kind))
        assert "nothing in it can be read (audit entries of an unknown form" in str(refused.value)


@pytest.mark.parametrize("keep", [10, 60, 400])
def test_what_follows_an_entry_that_was_cut_in_its_line_is_kept(tmp_path, keep):
    """A server that is killed leaves half a line, and the next one goes on in it."""
    obj = {"apiVersion": "batch/v1", "kind": "Job", **job("a")}
    lines = [
        json.dumps(entry("create", "jobs", f"a-{n}", at_s=n, response=obj, code=201, audit_id=str(n)),
                   separators=(",", ":"))
        for n in range(3)
    ]  # fmt: skip
    assert lines[0].startswith('{"kind":"Event","apiVersion":"audit.k8s.io/')
    path = tmp_path / "audit.log"
    cut = lines[1][: keep + 40]
    assert len(cut) < len(lines[1])
    for more in (1, 2):  # whole ones behind it
        path.write_text(f"{lines[0]}\n{cut}{lines[2] * more}\n")
        _, (result,) = imported(tmp_path, path)
        assert result.shapes == {"audit": 1 + more}
        assert result.problems["audit entries that end within a line, left out"] == 1
