"""Traces out of what kubectl printed and what other tools recorded, made of shipped watch logs."""

from __future__ import annotations

import json
import shlex
import zipfile
from collections import Counter

import pytest
import yaml
import zstandard

from tests.support.watchlog import job, pod
from tests.unit.trace.importers.audit_logs import TRACES
from tracekit.base.errors import TraceFormatError
from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.check.verdict import Verdict
from tracekit.judge.judged import Judge, resolve_era
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.importers.sample import Sample
from tracekit.trace.reading.reader import TraceReader

NAME = "v1.36.3-restart"
KINDS = {"jobs": ("batch/v1", "Job"), "cronjobs": ("batch/v1", "CronJob"), "pods": ("v1", "Pod")}


def frames():
    path = TRACES / NAME / "watch.jsonl.zst"
    with path.open("rb") as file:
        text = zstandard.ZstdDecompressor().stream_reader(file).read()
    for line in text.splitlines():
        frame = json.loads(line)
        if frame["resource"] in KINDS and frame["type"] in ("LIST", "ADDED", "MODIFIED", "DELETED"):
            api, kind = KINDS[frame["resource"]]
            frame["object"] = {"apiVersion": api, "kind": kind, **frame["object"]}
            yield frame


def imported(tmp_path, path, kind=None):
    target = tmp_path / "trace"
    header = TraceHeader(kubernetes_version="v1.36.3")
    results = import_files(ImportRequest([str(path)], target, header, kind))
    return TraceReader(target), results


def verdicts(reader):
    report = Judge(reader, resolve_era(reader, None, None)).report()
    return report, Counter(j.verdict for j in report.judgements)


@pytest.fixture(scope="module")
def events():
    return list(frames())


def event_of(frame):
    kind = "ADDED" if frame["type"] == "LIST" else frame["type"]
    return {"type": kind, "object": frame["object"]}


class TestKubectl:
    @pytest.mark.full
    def test_a_watch_with_ts_is_as_good_as_a_record_of_it(self, tmp_path, events):
        lines = []
        for frame in events:
            stamp = format_rfc3339(frame["recv"] // 1000 * 1000)
            text = json.dumps(event_of(frame), indent=4)
            lines += [f"{stamp} {line}" for line in text.splitlines()]
        path = tmp_path / "terminal.txt"
        path.write_text("\n".join(lines) + "\n")
        reader, results = imported(tmp_path, path)
        assert results[0].kind == "kubectl"
        report, found = verdicts(reader)
        assert report.divergences == []
        unknowable = [j for j in report.judgements if j.verdict is Verdict.UNKNOWABLE]
        assert len(unknowable) <= 0.05 * len(report.judgements)
        assert any("no Lease tells of restarts" in j.why for j in unknowable)
        assert found[Verdict.MATCH] > 300

    def test_without_stamps_what_depends_on_times_is_unknowable(self, tmp_path, events):
        path = tmp_path / "terminal.json"
        path.write_text("".join(json.dumps(event_of(f)) + "\n" for f in events))
        reader, _ = imported(tmp_path, path)
        assert "no receive times" in reader.header.scope["times"]
        report, found = verdicts(reader)
        assert not {Verdict.EARLY, Verdict.LATE, Verdict.MISSING} & {
            j.verdict for j in report.judgements
        }
        assert found[Verdict.MATCH] > 250

    @pytest.mark.parametrize("form", ["json", "yaml"])
    def test_a_list_is_one_look(self, tmp_path, form):
        items = [
            {"apiVersion": "batch/v1", **job()},
            {"apiVersion": "v1", **pod()},
        ]
        document = {"apiVersion": "v1", "kind": "List", "items": items}
        path = tmp_path / f"list.{form}"
        dump = yaml.safe_dump if form == "yaml" else lambda d: json.dumps(d, indent=4)
        path.write_text(dump(document))
        reader, results = imported(tmp_path, path)
        assert results[0].kind == "kubectl"
        rows = reader.table(("stream", "type", "name", "created_ns")).to_pylist()
        assert [r["name"] for r in rows if r["type"] == "LIST"] == ["three", "three-x"]
        assert all(r["created_ns"] for r in rows if r["type"] == "LIST" and r["stream"] == "jobs")

    def test_a_cluster_info_dump_is_a_directory_of_lists(self, tmp_path):
        place = tmp_path / "dump" / "ns"
        place.mkdir(parents=True)
        pods = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "90"},
                "items": [pod()]}  # fmt: skip
        (place / "pods.json").write_text(json.dumps(pods, indent=4))
        (place / "logs.txt").write_text("hello\n")
        reader, results = imported(tmp_path, tmp_path / "dump")
        assert reader.table(("rv",), types=["LIST_END"]).to_pylist() == [{"rv": 90}]
        assert any("left out" in remark for remark in results[0].remarks)


class TestOtherRecorders:
    def test_sched_recorder(self, tmp_path, events):
        words = {"LIST": "Add", "ADDED": "Add", "MODIFIED": "Update", "DELETED": "Delete"}
        path = tmp_path / "record.jsonl"
        with path.open("w") as out:
            for frame in events:
                obj = frame["object"]
                if frame["type"] == "DELETED":
                    meta = {k: obj["metadata"][k] for k in ("name", "namespace")}
                    obj = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": meta}
                record = {"time": format_rfc3339(frame["recv"]), "event": words[frame["type"]],
                          "resource": obj}  # fmt: skip
                out.write(json.dumps(record) + "\n")
        reader, results = imported(tmp_path, path)
        assert results[0].kind == "sched-recorder"
        gone = {r["uid"] for r in reader.table(("uid",), types=["DELETED"]).to_pylist()}
        assert gone == {f["object"]["metadata"]["uid"] for f in events if f["type"] == "DELETED"}

    @staticmethod
    def archive(path, records):
        with zipfile.ZipFile(path, "w") as out:
            about = {"format_version": 2, "kubernetes_version": "v1.30.2"}
            out.writestr("k8shark-capture/metadata.json", json.dumps(about))
            for number, record in enumerate(records):
                data = zstandard.ZstdCompressor().compress(json.dumps(record).encode())
                out.writestr(f"k8shark-capture/records/{'ab' * 8}/{number}.json.zst", data)
        return path

    @staticmethod
    def poll(namespace, at, items):
        return {
            "captured_at": at, "api_path": f"/apis/batch/v1/namespaces/{namespace}/jobs",
            "http_method": "GET", "response_code": 200,
            "response_body": {"kind": "JobList", "apiVersion": "batch/v1",
                              "metadata": {"resourceVersion": "50"}, "items": items},
        }  # fmt: skip

    def test_kshrk_polls_are_lists_and_what_is_missing_from_one_went_in_the_gap(self, tmp_path):
        one, two = job("one", 10), job("two", 11)
        two["metadata"]["namespace"] = "other"
        path = self.archive(
            tmp_path / "capture.kshrk",
            [
                self.poll("ns", "2026-11-21T05:43:00Z", [one]),
                self.poll("other", "2026-11-21T05:43:01Z", [two]),
                self.poll("ns", "2026-11-21T05:43:30Z", []),
                self.poll("other", "2026-11-21T05:43:31Z", [two]),
            ],
        )
        reader, results = imported(tmp_path, path)
        assert results[0].kind == "kshrk"
        (gone,) = reader.table(("name", "synthesized"), types=["DELETED"]).to_pylist()
        assert gone == {"name": "one", "synthesized": True}
        assert len(reader.gaps()) == 1

    def test_broken_and_encrypted_archives_are_said(self, tmp_path):
        whole = self.archive(tmp_path / "a.kshrk", [self.poll("ns", "2026-11-21T05:43:00Z", [])])
        broken = tmp_path / "b.kshrk"
        broken.write_bytes(whole.read_bytes()[:-30])
        with pytest.raises(TraceFormatError, match="broken archive"):
            imported(tmp_path, broken)
        secret = tmp_path / "c.kshrk"
        secret.write_bytes(b"age-encryption.org/v1\n-> X25519\n")
        with pytest.raises(TraceFormatError, match="is encrypted"):
            imported(tmp_path, secret)


def test_nothing_that_is_known(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("hello\nworld\n")
    with pytest.raises(TraceFormatError, match="holds nothing that can be imported"):
        imported(tmp_path, path)


@pytest.mark.parametrize("kind", [None, "kubectl"])
@pytest.mark.parametrize(
    ("wrapped", "path"),
    [
        (lambda items: {"type": "collection", "data": items}, ".data[]"),
        (lambda items: {"specversion": "1.0", "type": "t", "data": items[0]}, ".data"),
    ],
)
def test_objects_under_data_are_not_said_to_be_nothing(tmp_path, wrapped, path, kind):
    """Rancher's lists and CloudEvents: the refusal says how to take the objects out."""
    file = tmp_path / "an export.json"
    file.write_text(json.dumps(wrapped([job()])))
    with pytest.raises(TraceFormatError) as raised:
        imported(tmp_path, file, kind)
    assert "has its objects under `data`" in str(raised.value)
    assert f"jq -c '{path}' {shlex.quote(str(file))} > objects.jsonl" in str(raised.value)


def test_a_log_is_not_parsed_to_be_refused(tmp_path, monkeypatch):
    """A bundle has thousands of logs of its pods: why each is left out costs no second reading."""
    parsed = []
    monkeypatch.setattr(Sample, "values", property(parsed.append))
    path = tmp_path / "pod.log"
    path.write_text("level=info msg=done\n" * 30_000)
    with pytest.raises(TraceFormatError, match="holds nothing that can be imported"):
        imported(tmp_path, path)
    assert not parsed
