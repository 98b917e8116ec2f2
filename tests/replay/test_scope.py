"""All that is concluded from absence asks the coverage: each place, seen and unseen.

A record of three hours: a CronJob that is due every hour and starts nothing, and a Job that never
gets a pod. Where everything is watched each place says so; where a stream was looked at only once,
is of another namespace or is not there, none does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import tracekit
from tests.support.watchlog import line, namespace, write_log
from tracekit.cli.main import cli
from tracekit.trace.importers.run import ImportRequest, import_files

S = 10**9
#: 2026-01-05T00:30:00Z
START_NS = 1_767_573_000 * S
END_NS = START_NS + 3 * 3600 * S
SPEC = {"schedule": "0 * * * *", "concurrencyPolicy": "Allow", "suspend": False,
        "jobTemplate": {"spec": {"template": {"spec": {}}}}}  # fmt: skip
JOB_SPEC = {
    "parallelism": 1, "completions": 1, "completionMode": "NonIndexed", "backoffLimit": 6,
    "suspend": False, "selector": {"matchLabels": {"controller-uid": "x"}},
    "template": {"spec": {"containers": [{"name": "c"}], "restartPolicy": "Never"}},
}  # fmt: skip


def _object(kind: str, name: str, rv: int, spec: Mapping[str, Any], at_ns: int) -> dict[str, Any]:
    created = datetime.fromtimestamp(at_ns // S, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "batch/v1", "kind": kind, "spec": spec, "status": {},
        "metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}",
                     "resourceVersion": str(rv), "creationTimestamp": created},
    }  # fmt: skip


def _lines(watched: Sequence[str], looked: Sequence[str], scope: str) -> list[bytes]:
    """The record; streams that are neither watched nor looked at are not in it."""
    there = {
        "cronjobs": [_object("CronJob", "hourly", 5, SPEC, START_NS - 60 * S)],
        "jobs": [_object("Job", "stuck", 6, JOB_SPEC, START_NS - S)],
        "namespaces": [namespace("shop", "uid-shop"), namespace("other", "uid-other")],
    }
    lines, dropped = [], _object("Job", "dropped", 7, JOB_SPEC | {"suspend": True}, START_NS - S)
    there["jobs"].append(dropped)
    for at_ns, streams in (
        (START_NS, (*watched, *looked, "namespaces")),
        (START_NS + S, looked),  # again: one list alone is taken for a watch that brought nothing
    ):
        for stream in streams:
            bound = {"resourceVersion": "9", "scope": "all" if stream == "namespaces" else scope}
            rows = [("LIST_BEGIN", bound), *(("LIST", obj) for obj in there.get(stream, ()))]
            lines += [line(stream, *row, at_ns=at_ns) for row in (*rows, ("LIST_END", bound))]
        there["jobs"] = there["jobs"][:1]
    if "jobs" in watched:
        gone = {**dropped, "metadata": {**dropped["metadata"], "resourceVersion": "10"}}
        lines.append(line("jobs", "DELETED", gone, at_ns=START_NS + 60 * S))
    for hour in (1, 2, 3):
        lines += [
            line(stream, "BOOKMARK", {"metadata": {"resourceVersion": str(10 + hour)}},
                 at_ns=START_NS + hour * 3600 * S)
            for stream in (*watched, "namespaces")
        ]  # fmt: skip
    lease = {"metadata": {"name": "other", "namespace": "kube-system", "uid": "uid-lease",
                          "resourceVersion": "20"}, "spec": {"holderIdentity": "x"}}  # fmt: skip
    return [*lines, line("leases", "ADDED", lease, at_ns=END_NS)]


STREAMS = ("cronjobs", "jobs", "pods", "events")
#: What was watched, only looked at, and in which namespaces.
UNSEEN: dict[str, tuple[Sequence[str], Sequence[str], str]] = {
    "all looked at only": ((), STREAMS, "all"),
    "Jobs and pods looked at only": (("cronjobs", "events"), ("jobs", "pods"), "all"),
    "all of another namespace": (STREAMS, (), "other"),
}


def _trace(folder: Path, watched: Sequence[str], looked: Sequence[str], scope: str) -> Path:
    log = write_log(folder / "log.jsonl", _lines(watched, looked, scope))
    import_files(ImportRequest([str(log)], folder / "trace", kind="watch"))
    return folder / "trace"


def _ticks_missed(trace: Path) -> bool:
    with tracekit.open(trace) as opened:
        found = opened.sql("SELECT outcome FROM cron_ticks").fetchall()
    assert len(found) == 3
    return ("missed",) in found


def _found(trace: Path) -> bool:
    with tracekit.open(trace) as opened:
        return any(finding.id == "TK306" for finding in opened.diagnose())


def _explained(trace: Path) -> bool:
    done = CliRunner().invoke(cli, ["explain", str(trace), "cronjob/hourly", "-n", "shop"])
    assert done.exit_code == 0, done.output
    return "missed" in done.output


def _not_begun(trace: Path) -> bool:
    with tracekit.open(trace) as opened:
        return "has not begun" in opened.diagnose().text()


def _diverges(trace: Path) -> bool:
    with tracekit.open(trace) as opened:
        return bool(opened.replay("v1.36.3").divergences)


def _told_live(trace: Path) -> bool:
    done = CliRunner().invoke(cli, ["watch", str(trace), "--once"])
    assert done.exit_code == 0, done.output
    return "TK306" in done.output


def _deleted_by_a_user(trace: Path) -> bool:
    with tracekit.open(trace) as opened:
        found = opened.sql("SELECT deleted_by, delete_evidence FROM deletions").fetchall()
    for deleted_by, evidence in found:
        assert deleted_by in ("user", "unknown")
        assert ("two lists" in evidence) == ("gone between" in evidence)
    return ("user", "inferred: no rule of a controller leads to it") in found


def _what_if(trace: Path) -> bool:
    done = CliRunner().invoke(
        cli, ["whatif", str(trace), "--kubernetes-version", "v1.30.0", "-o", "json"]
    )
    assert done.exit_code == 0, done.output
    document = json.loads(done.output[done.output.index("{") :])
    (found,) = (c for c in document["cronjobs"] if c["name"] == "hourly")
    assert found["verdict"] in ("same", "unknowable")
    return bool(found["verdict"] == "same")


def _report(trace: Path) -> bool:
    page = trace.with_name("report.html")
    done = CliRunner().invoke(cli, ["report", str(trace), "-o", str(page)])
    assert done.exit_code == 0, done.output
    return "TK306" in page.read_text()


PLACES: dict[str, Callable[[Path], bool]] = {
    "view cron_ticks": _ticks_missed,
    "findings": _found,
    "explain": _explained,
    "findings of Jobs": _not_begun,
    "verdicts": _diverges,
    "watch": _told_live,
    "view deletions": _deleted_by_a_user,
    "what-if": _what_if,
    "report": _report,
}


@pytest.mark.parametrize("place", PLACES)
def test_what_is_watched_is_concluded_from(tmp_path: Path, place: str) -> None:
    assert PLACES[place](_trace(tmp_path, STREAMS, (), "all"))


@pytest.mark.parametrize("unseen", UNSEEN)
@pytest.mark.parametrize("place", PLACES)
def test_what_nobody_saw_is_not(tmp_path: Path, place: str, unseen: str) -> None:
    assert not PLACES[place](_trace(tmp_path, *UNSEEN[unseen]))
