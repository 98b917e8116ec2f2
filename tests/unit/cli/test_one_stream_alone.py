"""A trace of one stream alone, watched or listed: what each verb says of it is true."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.traces import TRACES, json_lines
from tests.unit.cli.test_sql import run  # noqa: F401 - a fixture
from tracekit.trace.format.model import STREAM_KINDS
from tracekit.trace.importers.run import ImportRequest, import_files

LOG = TRACES / "v1.36.3-all" / "watch.jsonl.zst"
NAMESPACES = {"t-fixed-completions", "t-cronjobs", "t-backoff-limit"}
GROUPS = {"jobs": "batch/v1"}


@cache
def lines() -> list[dict[str, Any]]:
    """The record of these namespaces."""
    return [
        line
        for line in json_lines(LOG)
        if line["object"].get("metadata", {}).get("namespace", None) in {None, *NAMESPACES}
    ]


def listed(stream: str) -> str:
    """What `kubectl get -o json` had printed when the record ended."""
    last: dict[str, dict] = {}
    for line in lines():
        if line["resource"] == stream and line["type"] in ("LIST", "ADDED", "MODIFIED"):
            last[line["object"]["metadata"]["uid"]] = line["object"]
        elif line["resource"] == stream and line["type"] == "DELETED":
            last.pop(line["object"]["metadata"]["uid"], None)
    head = {"apiVersion": GROUPS.get(stream, "v1"), "kind": STREAM_KINDS[stream]}
    items = [{**head, **obj} for obj in last.values()]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def watched(stream: str) -> str:
    return "\n".join(json.dumps(line) for line in lines() if line["resource"] == stream)


@pytest.fixture(scope="module", params=["events", "pods", "jobs"])
def stream(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module", params=[listed, watched])
def trace(request: pytest.FixtureRequest, stream: str, tmp_path_factory) -> str:
    place = tmp_path_factory.mktemp(stream)
    (place / "source").write_text(request.param(stream), encoding="utf-8")
    import_files(ImportRequest([str(place / "source")], place / "trace"))
    return str(place / "trace")


def test_what_cannot_be_judged_has_no_green(run, trace: str, stream: str) -> None:  # noqa: F811
    code, out, err = run("replay", trace, "--diff")
    if stream == "jobs":
        assert code == 0
        assert ("no divergence" in out) or ("no action was seen" in out)
    else:
        assert code == 2
        assert "it has no states of Jobs or CronJobs" in err
        assert not out.rstrip().endswith("no divergence")


def test_jobs_that_were_not_recorded_are_not_none(run, trace: str, stream: str) -> None:  # noqa: F811
    code, out, err = run("jobs", trace)
    info = run("info", trace)[1]
    assert code == 0
    if stream == "jobs":
        assert "PODS" not in out.splitlines()[0]  # nobody looked at pods
        assert "Jobs: not recorded" not in info
    else:
        assert "none were recorded" in err
        assert "Jobs: not recorded" in info


def test_an_account_says_what_there_is(run, trace: str, stream: str) -> None:  # noqa: F811
    code, out, _ = run("explain", trace, "t-fixed-completions/three")
    assert code == 0
    assert "nobody knows who emitted" not in out
    assert "[different]" not in out
    if stream == "jobs":
        assert "pods: not recorded" in out
    else:
        assert "never the Job itself, so nothing of it is judged" in out
    if stream == "events":
        assert out.count("SuccessfulCreate") == 3


def test_listed_events_stand_at_their_own_times(run, trace: str, stream: str) -> None:  # noqa: F811
    code, out, _ = run("timeline", trace)
    assert code == 0
    if stream == "events":
        times = {line.split(".")[0] for line in out.splitlines() if " Event " in line}
        assert len(times) > 20


@pytest.mark.parametrize("verb", ["diagnose", "info", "sql", "report"])
def test_the_other_verbs_do_their_work(run, trace: str, verb: str, tmp_path: Path) -> None:  # noqa: F811
    more = {"sql": ["SELECT count(*) FROM verdicts"], "report": ["-o", str(tmp_path / "p.html")]}
    code, _, err = run(verb, trace, *more.get(verb, ()))
    assert code == 0, err
