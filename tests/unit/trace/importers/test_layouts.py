"""One list of objects in every layout and encoding that tools give it is the same trace."""

from __future__ import annotations

import bz2
import codecs
import gzip
import json
import lzma
from pathlib import Path

import pytest
import yaml
import zstandard

from tracekit.base.errors import TraceFormatError
from tracekit.trace.importers.documents import closed, documents, split
from tracekit.trace.importers.kubectl import HALF
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.importers.yamls import load
from tracekit.trace.reading.reader import TraceReader


def pod(number: int, padding: str = "") -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"p-{number}",
            "namespace": "shop",
            "uid": f"00000000-0000-4000-8000-{number:012}",
            "resourceVersion": str(100 + number),
            "creationTimestamp": "2026-03-01T10:00:00Z",
            "annotations": {"braces": '}{ "]', "padding": padding},
        },
        "spec": {"containers": [{"name": "c", "image": "busybox"}]},
        "status": {"phase": "Running"},
    }


def pods(count: int = 3, padding: str = "") -> dict:
    items = [pod(number, padding) for number in range(count)]
    return {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}


def text(indent: int | None = 4) -> bytes:
    return json.dumps(pods(), indent=indent).encode()


def listed(*items: dict) -> dict:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


class AsKubectl(yaml.SafeDumper):
    """Writes a text of lines as lines."""


AsKubectl.add_representer(
    str,
    lambda dumper, data: dumper.represent_scalar(
        "tag:yaml.org,2002:str", data, style="|" if "\n" in data else None
    ),
)


def printed(number: int, *, as_yaml: bool) -> str:
    """One pod, with an annotation in which kubectl keeps a manifest as JSON."""
    obj = pod(number)
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "m"}, "spec": {}}
    obj["metadata"]["annotations"]["last-applied"] = json.dumps(manifest) + "\n"
    return yaml.dump(obj, Dumper=AsKubectl) if as_yaml else json.dumps(obj, indent=4)


LAYOUTS = {
    "list-of-lists": json.dumps(listed(listed(listed(pod(0)), pod(1)), listed(pod(2)))).encode(),
    "list-of-lists-yaml": yaml.safe_dump(listed(listed(pod(0), pod(1)), pod(2))).encode(),
    "json-between-dashes": "\n---\n".join(json.dumps(pod(n)) for n in range(3)).encode(),
    "dashes-first": b"---\n" + text(),
    "json-yaml-json": "\n".join(printed(n, as_yaml=n == 1) for n in range(3)).encode(),
    "yaml-json-yaml": "\n".join(printed(n, as_yaml=n != 1) for n in range(3)).encode(),
    "yaml-dashes-json": "\n---\n".join(printed(n, as_yaml=n == 0) for n in range(3)).encode(),
    "pretty": text(),
    "compact": text(None),
    "flush": "\n".join(line.lstrip() for line in text().decode().splitlines()).encode(),
    "crlf": text().replace(b"\n", b"\r\n"),
    "items-by-lines": b'{"apiVersion":"v1","kind":"List","items":[\n'
    + b",\n".join(json.dumps(item).encode() for item in pods()["items"])
    + b"\n]}",
    "array": json.dumps(pods()["items"]).encode(),
    "array-pretty": json.dumps(pods()["items"], indent=1).encode(),
    "jsonl": b"\n".join(json.dumps(item).encode() for item in pods()["items"]),
    "run-together": b"".join(json.dumps(item).encode() for item in pods()["items"]),
    "pretty-run-together": b"".join(json.dumps(i, indent=2).encode() for i in pods()["items"]),
    "marked-files-run-together": b"".join(
        codecs.BOM_UTF8 + json.dumps(i, indent=2).encode() + b"\n" for i in pods()["items"]
    ),
    "yaml": yaml.safe_dump(pods()).encode(),
    "yaml-comment": b"# saved by hand\n\n" + yaml.safe_dump(pods()).encode(),
    "yaml-documents": yaml.safe_dump_all(pods()["items"], explicit_start=True).encode(),
    "yaml-array": yaml.safe_dump(pods()["items"]).encode(),
    "utf-8-mark": codecs.BOM_UTF8 + text(),
    "utf-16": codecs.BOM_UTF16_LE + text().decode().encode("utf-16-le"),
    "utf-16-be": codecs.BOM_UTF16_BE + text().decode().encode("utf-16-be"),
    "utf-16-unmarked": text().decode().encode("utf-16-le"),
    "utf-16-yaml": yaml.safe_dump(pods()).encode("utf-16"),
    "gz": gzip.compress(text()),
    "bz2": bz2.compress(text()),
    "xz": lzma.compress(text()),
    "zst": zstandard.ZstdCompressor().compress(text()),
    "xz-utf-16": lzma.compress(text().decode().encode("utf-16")),
}


def states(path: Path) -> list[str]:
    return [
        json.loads(raw)["metadata"]["name"]
        for raw in TraceReader(path)
        .table(("raw",), streams=["pods"], types=["LIST", "MODIFIED", "ADDED"])["raw"]
        .to_pylist()
    ]


@pytest.mark.parametrize("kind", [None, "kubectl"])
@pytest.mark.parametrize("content", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_every_layout_is_the_same_objects(tmp_path: Path, content: bytes, kind: str | None) -> None:
    path = tmp_path / "source"
    path.write_bytes(content)
    (result,) = import_files(ImportRequest([str(path)], tmp_path / "trace", kind=kind))
    assert result.kind == "kubectl"
    assert sorted(states(tmp_path / "trace")) == ["p-0", "p-1", "p-2"]
    assert not [p for p in result.problems if "left out" in p or "cut off" in p]


def test_a_block_of_yaml_among_json_that_is_cut_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "source"
    path.write_text(f"{json.dumps(pod(0))}\napiVersion: v1\nkind: [\n{json.dumps(pod(1))}\n")
    (result,) = import_files(ImportRequest([str(path)], tmp_path / "trace"))
    assert states(tmp_path / "trace") == ["p-0", "p-1"]
    assert [n for p, n in result.problems.items() if "block of YAML" in p] == [1]


def test_a_folders_file_of_json_with_jobs_in_yaml_behind_is_read(tmp_path: Path) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    (tmp_path / "bundle").mkdir()
    path = tmp_path / "bundle" / "all.txt"
    path.write_text(f"{json.dumps(node, indent=2)}\n---\n{printed(0, as_yaml=True)}")
    import_files(ImportRequest([str(tmp_path / "bundle")], tmp_path / "trace"))
    assert states(tmp_path / "trace") == ["p-0"]


@pytest.mark.parametrize("indent", [None, 4])
def test_a_list_is_recognised_whatever_its_size(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "pods.json"
    path.write_text(json.dumps(pods(40, "x" * 16_000), indent=indent))
    (result,) = import_files(ImportRequest([str(path)], tmp_path / "trace"))
    assert result.kind == "kubectl"
    assert len(states(tmp_path / "trace")) == 40


@pytest.mark.parametrize(
    "more",
    [{}, {"apiVersion": "v1"}, {"apiVersion": "batch/v1"}, {"metadata": {"resourceVersion": "9"}},
     {"items": None}],
    ids=["bare", "version-of-kubectl", "version-of-jobs", "revision", "cluster-info-dump"],
)  # fmt: skip
@pytest.mark.parametrize("folder", [False, True])
def test_an_empty_list_is_a_look(tmp_path: Path, more: dict, folder: bool) -> None:
    path = tmp_path / "in" / "of-jobs.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"items": [], "kind": "JobList", **more}))
    name = str(path.parent if folder else path)
    (result,) = import_files(ImportRequest([name], tmp_path / "trace"))
    assert result.streams == {"jobs": 2}
    assert not [p for p in result.problems if "left out" in p]


@pytest.mark.parametrize(
    ("name", "stream"),
    [("jobs.yaml", "jobs"), ("jobs-prod.yaml", "jobs"), ("shop_pods.json", "pods"),
     ("cron-jobs.yaml", "cronjobs"), ("jobs/prod.json", "jobs"), ("pods-and-jobs.json", None),
     ("jobless.json", None)],
)  # fmt: skip
def test_an_empty_list_that_names_nothing_is_of_what_its_file_is_named_after(
    tmp_path: Path, name: str, stream: str | None
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": []}))
    request = ImportRequest([str(path)], tmp_path / "trace")
    if stream is None:
        with pytest.raises(TraceFormatError, match="do not say of what"):
            import_files(request)
    else:
        assert import_files(request)[0].streams == {stream: 2}


def test_a_log_may_begin_with_other_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    lines = [b"I0301 10:00:00.1 1 server.go:1] starting"] * 20_000
    lines += [json.dumps(item).encode() for item in pods()["items"]]
    path.write_bytes(b"\n".join(lines))
    (result,) = import_files(ImportRequest([str(path)], tmp_path / "trace"))
    assert states(tmp_path / "trace") == ["p-0", "p-1", "p-2"]
    assert result.problems[f"what is no JSON in {path}, left out"] == 20_000


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("more", [{}, {"apiVersion": "v1"}])
def test_a_list_of_which_somebody_left_the_kind_out_is_not_cut_off(
    tmp_path: Path, more: dict, indent: int | None
) -> None:
    """JSON that is whole as such has all that it had."""
    path = tmp_path / "list.json"
    path.write_text(json.dumps({**more, "items": [pod(n) for n in range(3)]}, indent=indent))
    (result,) = import_files(ImportRequest([str(path)], tmp_path / "trace"))
    assert not any("left out" in problem for problem in result.problems)
    table = TraceReader(tmp_path / "trace").table(("type", "name"))
    names = [row["name"] for row in table.to_pylist() if row["type"] == "LIST"]
    assert names == [pod(n)["metadata"]["name"] for n in range(3)]


def test_a_line_with_half_a_character_is_counted_as_that(tmp_path: Path) -> None:
    path = tmp_path / "pods.jsonl"
    whole, half = (pod(n, "HERE"[: 4 * n]) for n in range(2))
    cut = json.dumps(half).replace("HERE", "\\ud83d")
    path.write_text(f"{json.dumps(whole)}\n{cut}\n")
    (result,) = import_files(ImportRequest([str(path)], tmp_path / "trace"))
    said = {what: n for what, n in result.problems.items() if "left out" in what}
    assert said == {f"{HALF} in {path}, left out": 1}
    assert result.shapes == {"object": 1}


@pytest.mark.parametrize(
    ("broken", "whole"),
    [
        (b'{"a":{"b":"xx\n{"c":1}\n{"d":2}', 2),
        (b'{"a":{\n{"c":1}\n{"d":2}', 2),
        (b'{\n "a":1,\n{\n "b":2\n}', 1),
        (b'{"a":1}\nprose {\n{"b":2}', 2),
    ],
)
def test_a_document_that_was_cut_takes_none_with_it(broken: bytes, whole: int) -> None:
    found = split(broken)
    parsed = 0
    for piece in found:
        try:
            parsed += isinstance(json.loads(piece), dict)
        except ValueError:
            continue
    assert (parsed, len(found)) == (whole, whole + 1)


def test_text_that_is_no_document_comes_out_with_its_line() -> None:
    lines = [b"node-1 {", b"", b'{"a": 1}', b"tail"]
    assert list(documents(lines, "x")) == [(1, b"node-1 {"), (3, b'{"a": 1}'), (4, b"tail")]


def test_the_beginning_of_a_document_is_closed_after_a_whole_value() -> None:
    begun = b'{"items":[{"a":1},{"b":{"c":"}"},"d":"e'
    assert json.loads(closed(begun) or b"") == {"items": [{"a": 1}, {"b": {"c": "}"}}]}
    assert json.loads(closed(begun, 2) or b"") == {"items": [{"a": 1}]}
    assert closed(b'{"a": "b') is None


def test_aliases_cannot_stand_for_more_than_memory_holds() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(TraceFormatError, match="aliases"):
        load("\n".join(lines).encode(), "bomb")
