"""Copies of a trace keep how its rows are known, and no bodies of requests."""

from __future__ import annotations

import json

import pytest

from tests.support.watchlog import job, pod
from tests.unit.trace.importers.audit_logs import entry, write
from tracekit.cli.main import main
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.reading.reader import TraceReader


def test_redaction_keeps_who_did_it_and_drops_the_bodies_of_refused_requests(tmp_path):
    secret = pod()
    secret["spec"]["containers"] = [
        {"name": "c", "env": [{"name": "PASSWORD", "value": "hunter2"}]}
    ]
    log = write(
        tmp_path / "audit.log",
        [
            entry("create", "jobs", "three", response=job(), code=201, user="admin"),
            entry("create", "pods", None, at_s=1, code=403, request=secret),
        ],
    )
    import_files(ImportRequest([str(log)], tmp_path / "trace"))
    with pytest.raises(SystemExit) as stopped:
        main(["redact", str(tmp_path / "trace"), "-o", str(tmp_path / "clean")])
    assert not stopped.value.code
    rows = TraceReader(tmp_path / "clean").table(("type", "actor", "code", "raw")).to_pylist()
    assert [(r["type"], r["code"]) for r in rows] == [("ADDED", None), ("CALL", 403)]
    assert rows[0]["actor"] == "admin"
    assert "hunter2" not in json.dumps(rows)


def test_info_says_what_the_source_did_not_hold(tmp_path, capsys):
    log = write(
        tmp_path / "audit.log",
        [
            entry("create", "jobs", "three", response=job(), code=201, user="admin"),
            entry("create", "pods", None, at_s=1, code=403, request=pod()),
        ],
    )
    with pytest.raises(SystemExit):
        main(["import", str(log), "-o", str(tmp_path / "trace")])
    assert "recognised as audit" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["info", str(tmp_path / "trace")])
    out = capsys.readouterr().out
    assert "events: not recorded" in out
    assert "requests without a state: 1 refused with 403" in out
