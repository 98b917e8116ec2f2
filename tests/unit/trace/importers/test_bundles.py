"""Folders and archives as they come: what matters is taken, the rest counted, nothing escapes."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
import zstandard

from tracekit.base.errors import TraceFormatError
from tracekit.trace.importers.report import ImportResult
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.reading.reader import TraceReader

Files = dict[str, bytes]


def thing(kind: str, space: str, number: int) -> dict:
    return {
        "apiVersion": "batch/v1" if kind.endswith("Job") else "v1",
        "kind": kind,
        "metadata": {
            "name": f"{kind.lower()}-{number}",
            "namespace": space,
            "uid": f"{kind}-{space}-{number}",
            "resourceVersion": str(100 + number),
            "creationTimestamp": "2026-03-01T10:00:00Z",
        },
        "status": {},
    }


def listing(kind: str, items: list[dict], name: str | None = None) -> dict:
    version = "batch/v1" if kind.endswith("Job") else "v1"
    meta = {"resourceVersion": "200"}
    return {"apiVersion": version, "kind": name or f"{kind}List", "metadata": meta, "items": items}


def jobs(space: str, count: int = 2) -> dict:
    return listing("Job", [thing("Job", space, number) for number in range(count)])


def text(document: object) -> bytes:
    return json.dumps(document, indent=4).encode()


def must_gather() -> Files:
    top = "must-gather.local.1/quay-io-1"
    pod = thing("Pod", "shop", 0)
    return {
        f"{top}/timestamp": b"2026-03-01 11:00:00.5 +0000 UTC m=+0.1\n"
        b"2026-03-01 11:05:00.25 +0000 UTC m=+300.1\n",
        f"{top}/version": b"openshift/must-gather\n4.20\n",
        f"{top}/cluster-scoped-resources/core/nodes/a.yaml": yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "status": {"nodeInfo": {"kubeletVersion": "v1.33.1"}},
            }
        ).encode(),
        f"{top}/namespaces/shop/batch/jobs.yaml": yaml.safe_dump(jobs("shop")).encode(),
        f"{top}/namespaces/shop/core/pods.yaml": yaml.safe_dump(listing("Pod", [pod])).encode(),
        f"{top}/namespaces/shop/core/configmaps.yaml": yaml.safe_dump(
            listing("ConfigMap", [])
        ).encode(),
        f"{top}/namespaces/shop/pods/pod-0/pod-0.yaml": yaml.safe_dump(pod).encode(),
        f"{top}/namespaces/shop/pods/pod-0/c/c/logs/current.log": b"a line\n" * 100,
        f"{top}/namespaces/idle/batch/jobs.yaml": yaml.safe_dump(listing("Job", [])).encode(),
    }


def troubleshoot() -> Files:
    untyped = [{"metadata": thing("Pod", "shop", 0)["metadata"], "spec": {}}]
    return {
        "b/cluster-info/cluster_version.json": text({"info": {"gitVersion": "v1.33.1+k3s1"}}),
        "b/cluster-resources/jobs/shop.json": text(jobs("shop")),
        "b/cluster-resources/jobs/idle.json": text(listing("Job", [])),
        "b/cluster-resources/pods/shop.json": text(
            {"kind": "PodList", "apiVersion": "v1", "items": untyped}
        ),
        "b/cluster-resources/deployments/shop.json": text(listing("Deployment", [])),
        "b/analysis.json": b"[]",
    }


def support_kit() -> Files:
    return {
        "h/metadata.yaml": b'bundleName: x\nbundleCreatedAt: "2026-03-01T11:05:00.25Z"\n'
        b"kubernetesVersion: v1.33.1+rke2r1\n",
        "h/yamls/namespaced/shop/batch/v1/jobs.yaml": yaml.safe_dump(jobs("shop")).encode(),
        "h/yamls/namespaced/idle/batch/v1/jobs.yaml": yaml.safe_dump(listing("Job", [])).encode(),
        "h/yamls/namespaced/shop/v1/pods.yaml": yaml.safe_dump(
            listing("Pod", [thing("Pod", "shop", 0)])
        ).encode(),
        "h/nodes/n.log": b"\0\1\2binary",
    }


def dump() -> Files:
    return {
        "shop/jobs.json": text(jobs("shop")),
        "shop/pods.json": text(listing("Pod", [thing("Pod", "shop", 0)])),
        "shop/daemonsets.json": text(listing("DaemonSet", [])),
        "nodes.json": text(
            {
                "apiVersion": "v1",
                "kind": "NodeList",
                "items": [{"status": {"nodeInfo": {"kubeletVersion": "v1.33.1"}}}],
            }
        ),
    }


def insights() -> Files:
    def untyped(kind: str, space: str, number: int) -> bytes:
        obj = thing(kind, space, number)
        return text({"metadata": obj["metadata"], "spec": {}, "status": {}})

    return {
        "config/node/a.json": text({"metadata": {"uid": "n"}, "status": {}}),
        "config/version.json": text({"status": {"kubeletVersion": "v1.33.1"}}),
        "config/pod/shop/pod-0.json": untyped("Pod", "shop", 0),
        "conditional/namespaces/shop/pods/pod-1/pod-1.json": untyped("Pod", "shop", 1),
        "config/job/shop/job-0.json": untyped("Job", "shop", 0),
        "events/shop.json": text({"items": [{"namespace": "shop", "reason": "x"}]}),
        "namespaces/shop/pods/pod-0/logs/current.log": b"[INFO] started\n",
    }


def test_objects_without_kinds_are_of_the_kind_that_their_place_names(tmp_path: Path) -> None:
    source = tmp_path / "bundle"
    folder(source, insights())
    reader, result = imported(source, tmp_path)
    assert names(reader) == ["jobs/shop/job-0", "pods/shop/pod-0", "pods/shop/pod-1"]
    assert not any("cut off" in remark for remark in result.remarks)  # a log may begin with [


def test_what_told_the_version_is_not_among_what_was_left_out(tmp_path: Path) -> None:
    _, result = imported(folder(tmp_path / "bundle", support_kit()), tmp_path)
    assert "the cluster's version, v1.33.1+rke2r1, is that of the bundle's kubernetesVersion" in (
        result.remarks
    )
    assert not any("metadata.yaml" in remark for remark in result.remarks)


def sos() -> Files:
    top = "sosreport-a/sos_commands/kubernetes/cluster-info"
    get = "kubectl_--kubeconfig_.etc.kubernetes.admin.conf_get_-o_json_--namespace"
    return {
        f"{top}/kubectl_--kubeconfig_.etc.kubernetes.admin.conf_version": b"Client Version: v1.30.0\n"
        b"Server Version: v1.33.1\n",
        "sosreport-a/sos_commands/date/date": b"Sun Mar  1 11:05:00.250 UTC 2026\n"
        b"Sun Mar  1 11:05:00 UTC 2026\n",
        f"{top}/shop/{get}_shop_jobs": text(jobs("shop")),
        f"{top}/shop/{get}_shop_pods": text(listing("Pod", [thing("Pod", "shop", 0)])),
        f"{top}/idle/{get}_idle_jobs": text(listing("Job", [], "List")),
        f"{top}/idle/{get}_idle_configmaps": text(listing("ConfigMap", [], "List")),
    }


BUNDLES = {
    "must-gather": must_gather,
    "troubleshoot": troubleshoot,
    "support-bundle-kit": support_kit,
    "cluster-info-dump": dump,
    "sos": sos,
}


def folder(place: Path, files: Files) -> Path:
    for name, content in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return place


def tarred(files: Files, mode: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def zipped(files: Files) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def imported(source: Path, place: Path, **options: object) -> tuple[TraceReader, ImportResult]:
    results = import_files(ImportRequest([str(source)], place / "trace", **options))  # type: ignore[arg-type]
    return TraceReader(place / "trace"), results[0]


def names(reader: TraceReader) -> list[str]:
    rows = reader.table(("stream", "namespace", "name"), types=["LIST", "MODIFIED", "DELETED"])
    found = (row for row in rows.to_pylist() if row["stream"] != "nodes")
    return sorted("/".join(map(str, row.values())) for row in found)


WANTED = ["jobs/shop/job-0", "jobs/shop/job-1", "pods/shop/pod-0"]
WANTED_OF = {"insights": ["jobs/shop/job-0", "pods/shop/pod-0", "pods/shop/pod-1"]}


FORMS = ("w", "w:gz", "w:xz", "w:bz2", "zst", "zip")


def packed(files: Files, form: str) -> bytes:
    if form == "zip":
        return zipped(files)
    if form == "zst":
        return zstandard.ZstdCompressor().compress(tarred(files, "w"))
    return tarred(files, form)


@pytest.mark.parametrize("form", ["folder", *FORMS])
@pytest.mark.parametrize("bundle", BUNDLES)
def test_a_bundle_is_taken_as_it_comes(tmp_path: Path, bundle: str, form: str) -> None:
    files = BUNDLES[bundle]()
    source = tmp_path / "bundle"
    if form == "folder":
        folder(source, files)
    else:
        source.write_bytes(packed(files, form))
    reader, result = imported(source, tmp_path)
    assert names(reader) == WANTED
    assert (reader.header.kubernetes_version or "").startswith("v1.33.1")
    assert result.synthesized == 0
    assert any("left out" in remark for remark in result.remarks)
    if bundle in ("must-gather", "support-bundle-kit"):
        assert "2026-03-01T11:05:00.25" in result.times


@pytest.mark.parametrize("outer", ["folder", *FORMS])
@pytest.mark.parametrize("bundle", [*BUNDLES, "insights"])
def test_an_archive_in_an_archive_is_opened(tmp_path: Path, bundle: str, outer: str) -> None:
    """Once, in whatever both are packed; one more is left out, and said."""
    files = insights() if bundle == "insights" else BUNDLES[bundle]()
    wanted = WANTED_OF.get(bundle, WANTED)
    for number, inner in enumerate(FORMS):
        around = {"inner/x": packed(files, inner), "readme": b"see x"}
        place = tmp_path / str(number)
        place.mkdir()
        source = place / "bundle"
        if outer == "folder":
            folder(source, around)
        else:
            source.write_bytes(packed(around, outer))
        reader, result = imported(source, place)
        assert names(reader) == wanted, inner
        assert any("left out" in remark for remark in result.remarks)


@pytest.mark.parametrize("form", FORMS)
def test_an_archive_three_deep_is_left_out_and_said(tmp_path: Path, form: str) -> None:
    deep = packed({"y": packed({"z": packed(dump(), form)}, form)}, form)
    source = tmp_path / "bundle"
    source.write_bytes(deep)
    with pytest.raises(TraceFormatError, match="archives within archives within archives"):
        imported(source, tmp_path)
    source.write_bytes(packed({"y": deep, "jobs.json": text(jobs("shop"))}, form))
    reader, result = imported(source, tmp_path)
    assert names(reader) == WANTED[:2]
    assert any("within archives within archives" in remark for remark in result.remarks)


def test_lists_of_namespaces_are_one_look_and_an_empty_one_counts(tmp_path: Path) -> None:
    reader, _ = imported(folder(tmp_path / "b", must_gather()), tmp_path)
    begins = reader.table(("raw",), streams=["jobs"], types=["LIST_BEGIN"])["raw"].to_pylist()
    assert [json.loads(raw)["scope"] for raw in begins] == [["idle", "shop"]]


def test_a_second_look_at_one_namespace_deletes_nothing_of_another(tmp_path: Path) -> None:
    later = {**jobs("a", 1), "metadata": {"resourceVersion": "300"}}
    files = {"1/jobs.json": text(jobs("a")), "2/jobs.json": text(jobs("b")),
             "3/jobs.json": text(later)}  # fmt: skip
    reader, result = imported(folder(tmp_path / "b", files), tmp_path)
    gone = reader.table(("namespace", "name"), types=["DELETED"]).to_pylist()
    assert gone == [{"namespace": "a", "name": "job-1"}]
    assert result.synthesized == 1


def test_no_link_is_followed_and_no_member_leaves_the_folder(tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_bytes(text(jobs("secret")))
    place = folder(tmp_path / "b", {"jobs.json": text(jobs("shop"))})
    (place / "link.json").symlink_to(outside)
    reader, result = imported(place, tmp_path)
    assert names(reader) == WANTED[:2]
    assert any("link" in remark and "left out" in remark for remark in result.remarks)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in ("../../escaped.json", "/escaped.json"):
            member = tarfile.TarInfo(name)
            member.size = len(text(jobs("shop")))
            archive.addfile(member, io.BytesIO(text(jobs("shop"))))
        link = tarfile.TarInfo("l.json")
        link.type, link.linkname = tarfile.SYMTYPE, str(outside)
        archive.addfile(link)
    (tmp_path / "t").mkdir()
    evil = tmp_path / "t" / "evil.tar"
    evil.write_bytes(out.getvalue())
    reader, _ = imported(evil, tmp_path / "t")
    assert "secret" not in str(names(reader))
    assert sorted(p.name for p in (tmp_path / "t").iterdir()) == ["evil.tar", "trace"]


@pytest.mark.parametrize("keep", [0.2, 0.31, 0.45])
@pytest.mark.parametrize("form", ["w", "w:gz", "zip"])
def test_an_archive_that_was_cut_is_said_to_be(tmp_path: Path, form: str, keep: float) -> None:
    whole = zipped(dump()) if form == "zip" else tarred(dump(), form)
    source = tmp_path / "bundle"
    source.write_bytes(whole[: int(len(whole) * keep)])
    with suppress(TraceFormatError):  # nothing of it was whole
        _, result = imported(source, tmp_path)
        assert any("damaged" in r or "too early" in r for r in result.remarks)


def test_a_folder_with_nothing_for_a_trace_says_what_it_has(tmp_path: Path) -> None:
    place = folder(tmp_path / "b", {"a.json": text(listing("DaemonSet", [])), "b.txt": b"prose\n"})
    with pytest.raises(TraceFormatError, match=r"none of the files in .* can be imported") as said:
        imported(place, tmp_path)
    assert "1 with objects of other kinds only" in str(said.value)
