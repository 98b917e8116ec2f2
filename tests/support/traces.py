"""The shipped traces: imported once per test run, and what their audit logs say."""

from __future__ import annotations

import fcntl
import io
import json
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import zstandard
from click.testing import CliRunner

from tracekit.cli.import_ import import_
from tracekit.trace.reading.reader import TraceReader

ROOT = Path(__file__).parents[2]
TRACES = ROOT / "traces"
ALL = sorted(path.parent.name for path in TRACES.glob("*/about.json"))
CONTROLLERS = {
    "job": "system:serviceaccount:kube-system:job-controller",
    "cronjob": "system:serviceaccount:kube-system:cronjob-controller",
    "ttl": "system:serviceaccount:kube-system:ttl-after-finished-controller",
}
#: What the audit log can count of the Job controller: it does not say what a patch of a pod did.
AUDITED_KINDS = ("pod-create", "pod-delete", "pod-patch", "status-update", "event")
PATCHES = ("finalizer-removal", "pod-adopt", "pod-release")
_SUCCESS = range(200, 300)
#: Names a folder that all processes of a test run share.
SHARED_VARIABLE = "TRACEKIT_TESTS_SHARED"


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a compressed JSON-lines file."""
    with path.open("rb") as packed:
        reader = zstandard.ZstdDecompressor().stream_reader(packed)
        for line in io.BufferedReader(reader, 1 << 20):
            yield orjson.loads(line)


@cache
def about(name: str | Path) -> dict[str, Any]:
    """What about.json says of a shipped trace, or of the folder of another run."""
    result: dict[str, Any] = json.loads((TRACES / name / "about.json").read_text())
    return result


def import_log(log: Path, target: Path, name: str | Path, scope: str | None = None) -> TraceReader:
    """Import a watch log as what about.json of the shipped trace or folder `name` says it is.

    A shipped one is imported once for all processes of a test run; each caller gets a copy.
    `scope`: what its lists asked for, where its rows do not show it.
    """
    shared = os.environ.get(SHARED_VARIABLE)
    if shared is None or scope is not None or not log.is_relative_to(TRACES):
        return _import_log(log, target, name, scope)
    kept = Path(shared) / "_".join((*log.relative_to(TRACES).parts, *Path(name).parts[-1:]))
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            _import_log(log, kept, name, None)  # put in place when it is whole
    shutil.copytree(kept, target)
    return TraceReader(target)


def _import_log(log: Path, target: Path, name: str | Path, scope: str | None) -> TraceReader:
    facts = about(name)
    result = CliRunner().invoke(
        import_,
        [
            "watch",
            str(log),
            "-o",
            str(target),
            "--kubernetes-version",
            facts["gitVersion"],
            "--feature-gates",
            facts["feature_gates"],
            *(() if scope is None else ("--scope", scope)),
            "--processes",  # other tests have the other cores
            "1",
        ],
        catch_exceptions=False,
    )
    assert result.exit_code == 0, result.output
    return TraceReader(target)


def as_audited(explained: Mapping[str, int]) -> dict[str, int]:
    """Counts of the Job controller's actions by the kinds that `audited_writes` can tell."""
    counts = {kind: explained[kind] for kind in AUDITED_KINDS if kind != "pod-patch"}
    return counts | {"pod-patch": sum(explained[kind] for kind in PATCHES)}


def audited_writes(name: str | Path, user: str) -> Counter[str]:
    """What a controller did to the server, by action, as the audit log of a trace has it.

    `name` is that of a shipped trace, or the folder of another run.
    A PUT or PATCH that changed nothing is invisible in a watch and is left out.
    """
    return Counter(_writes_by_user(name)[user])


@cache
def _writes_by_user(name: str | Path) -> Mapping[str, Counter[str]]:
    writes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    known: dict[str, tuple[Any, Any]] = {}
    deleted: defaultdict[str, set[str]] = defaultdict(set)
    for entry in json_lines(TRACES / name / "audit.jsonl.zst"):
        target = entry.get("objectRef", {})
        body = entry.get("responseObject") or {}
        meta = body.get("metadata", {})
        changed, off = False, False
        if entry["responseStatus"]["code"] in _SUCCESS and meta.get("uid"):
            # Taking the last finalizer off a pod that is being deleted ends it: the answer shows
            # the old revision without the finalizer.
            state = (meta.get("resourceVersion"), meta.get("finalizers"))
            before = known.get(meta["uid"])
            changed = before != state
            off = before is not None and not before[1]
            known[meta["uid"]] = state
        if entry["responseStatus"]["code"] not in _SUCCESS:
            continue
        user = entry["user"]["username"]
        counts, ended = writes[user], deleted[user]
        what = (entry["verb"], target.get("resource"), target.get("subresource"))
        match what:
            case ("create", "pods", None):
                counts["pod-create"] += 1
            case ("delete", "pods", None):
                key = f"{target['namespace']}/{target['name']}"
                counts["pod-delete"] += key not in ended
                ended.add(key)
            case ("patch", "pods", None):
                counts["pod-patch"] += changed and not (off and _takes_off(entry))
            case ("update", "jobs", "status") | ("update", "cronjobs", "status"):
                asked = (entry.get("requestObject") or {}).get("metadata", {})
                counts["status-update"] += asked.get("resourceVersion") != meta.get(
                    "resourceVersion"
                )
            case ("create", "jobs", None):
                counts["job-create"] += 1
            case ("delete", "jobs", None):
                counts["job-delete"] += 1
            case ("create" | "patch", "events", None):
                counts["event"] += 1
    return writes


def _takes_off(entry: Mapping[str, Any]) -> bool:
    """Whether a patch does nothing but take a finalizer off.

    Off a pod that has none it changes nothing, though the revision of the answer may be new: a
    collector of garbage that deletes the pod in between has no object in the log.
    """
    asked = (entry.get("requestObject") or {}).get("metadata", {})
    return set(asked) == {"$deleteFromPrimitiveList/finalizers"}
