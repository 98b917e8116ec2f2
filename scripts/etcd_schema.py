"""Compile api_schema.json from the Go types: `python scripts/etcd_schema.py API APIMACHINERY`.

A type's struct tags say all that is needed to turn its stored form into the API's JSON: the
field's number on the wire, its name, and whether an empty value is left out. API and APIMACHINERY
are check outs of k8s.io/api and k8s.io/apimachinery.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

_SOURCES = (
    ("api", "core/v1/types.go", "core"),
    ("api", "batch/v1/types.go", "batch"),
    ("api", "coordination/v1/types.go", "coordination"),
    ("apimachinery", "pkg/apis/meta/v1/types.go", "meta"),
)
_ROOTS = (
    "core.Pod", "core.Event", "core.Namespace", "core.ResourceQuota", "batch.Job",
    "batch.CronJob", "coordination.Lease",
)  # fmt: skip
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(
    r"^\t(?:(\w+)\s+)?([\w.*\[\]]+)\s+`json:\"([^\"]*)\"[^`\n]*? protobuf:\"(\w+),(\d+),(\w+)",
    re.MULTILINE,
)
_ALIAS = re.compile(r"^type (\w+) (map\[string\][\w.]+|\[\][\w.]+|\w+)$", re.MULTILINE)
_PACKAGES = {"v1": "core", "metav1": "meta", "corev1": "core", "api": "core"}
#: Types that are written in JSON in a way of their own.
_SPECIAL = {
    "meta.Time": "time", "meta.MicroTime": "microtime", "meta.FieldsV1": "fields",
    "resource.Quantity": "quantity", "intstr.IntOrString": "intorstring",
    "runtime.RawExtension": "raw", "meta.Duration": "duration",
}  # fmt: skip
_SCALARS = {
    "string": "s", "bool": "b", "int32": "i", "int64": "i", "int": "i", "uint32": "i",
    "uint64": "i", "[]byte": "y", "byte": "i",
}  # fmt: skip


def compile_schema(api: Path, apimachinery: Path) -> dict[str, list[list[object]]]:
    """Messages by name: lists of [number, JSON name, type, list or map, omit empty, pointer]."""
    roots = {"api": api, "apimachinery": apimachinery}
    structs: dict[str, list[tuple[str, ...]]] = {}
    aliases: dict[str, str] = {}
    for where, path, package in _SOURCES:
        text = (roots[where] / path).read_text()
        for name, target in _ALIAS.findall(text):
            aliases[f"{package}.{name}"] = target
        for name, body in _STRUCT.findall(text):
            structs[f"{package}.{name}"] = [(package, *f) for f in _FIELD.findall(body)]
    schema: dict[str, list[list[object]]] = {}
    waiting = list(_ROOTS)
    while waiting:
        name = waiting.pop()
        if name in schema:
            continue
        schema[name] = []
        for package, _, go, tag, _, number, _ in structs[name]:
            json_name, _, options = tag.partition(",")
            kind, shape, pointer = _type(package, go, aliases)
            if "." in kind and kind not in structs:
                continue  # of a package that nothing here needs: told as an unknown field
            inline = json_name == "" or "inline" in options
            schema[name].append(
                [int(number), "" if inline else json_name, kind, shape, "omitempty" in options,
                 pointer, "omitzero" in options]
            )  # fmt: skip
            if "." in kind:
                waiting.append(kind)
    return dict(sorted(schema.items()))


def _type(package: str, go: str, aliases: dict[str, str]) -> tuple[str, str, bool]:
    pointer = go.startswith("*")
    go = go.removeprefix("*")
    shape = ""
    for _ in range(4):
        if go in _SCALARS:
            return _SCALARS[go], shape, pointer
        if go.startswith("[]"):
            shape, go = "list", go[2:]
            continue
        if go.startswith("map[string]"):
            shape, go = "map", go.removeprefix("map[string]")
            continue
        if go.startswith("map["):
            shape, go = "map", go.partition("]")[2]
            continue
        head, dot, tail = go.rpartition(".")
        full = f"{_PACKAGES.get(head, head)}.{tail}" if dot else f"{package}.{tail}"
        if full in _SPECIAL:
            return _SPECIAL[full], shape, pointer
        target = aliases.get(full) or {"types.UID": "string"}.get(go)
        if target is None:
            return full, shape, pointer
        package, go = full.partition(".")[0], target
    return go, shape, pointer


if __name__ == "__main__":
    made = compile_schema(Path(sys.argv[1]), Path(sys.argv[2]))
    text = json.dumps(made, separators=(",", ":"))
    room = Path(__file__).parent.parent / "tracekit/base/kube"
    (room / "api_schema.json").write_text(text + "\n")
