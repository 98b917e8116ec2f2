"""An audit log without bodies beside a watch: who made each write, where one client alone fits."""

from __future__ import annotations

from collections import Counter

import orjson
import pytest

from tests.unit.trace.importers.audit_logs import TRACES, header_of, shipped
from tracekit.check.verdict import Verdict
from tracekit.judge.judged import Judge, resolve_era
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.reading.reader import TraceReader

WRITTEN = ("ADDED", "MODIFIED", "DELETED")
NAMED_SHARE = 0.9


def at_metadata_level(line: bytes) -> bytes:
    """The entry as that level has it: a name that the server makes up is not in the request."""
    event = orjson.loads(line)
    event["level"] = "Metadata"
    event.pop("requestObject", None)
    event.pop("responseObject", None)
    ref = event.get("objectRef", {})
    if (event["verb"], ref.get("resource"), ref.get("subresource")) == ("create", "pods", None):
        ref.pop("name", None)
    return orjson.dumps(event)


def beside_the_watch(name: str, target, log) -> tuple[TraceReader, list]:
    watch = TRACES / name / "watch.jsonl.zst"
    request = ImportRequest([str(watch)], target, header_of(name), others=(str(log),))
    results = import_files(request)
    return TraceReader(target), results


def actors(reader: TraceReader) -> dict:
    columns = ("stream", "rv", "type", "actor")
    table = reader.table(columns, streams=["jobs", "pods", "cronjobs"], types=WRITTEN)
    return {(r["stream"], r["rv"], r["type"]): r["actor"] for r in table.to_pylist()}


@pytest.mark.parametrize("name", ["v1.36.3-all", "v1.20.15-all"])
def test_actors_are_filled_in_and_none_is_wrong(tmp_path, name):
    log = tmp_path / "metadata.log"
    log.write_bytes(b"".join(at_metadata_level(line) + b"\n" for line in shipped(name)))
    reader, results = beside_the_watch(name, tmp_path / "metadata", log)
    whole, _ = beside_the_watch(name, tmp_path / "whole", TRACES / name / "audit.jsonl.zst")
    told, right = actors(reader), actors(whole)
    assert told.keys() == right.keys()
    wrong = Counter(
        (key[0], right[key], actor)
        for key, actor in told.items()
        if actor is not None and actor != right[key]
    )
    assert wrong == {}
    assert sum(actor is not None for actor in told.values()) > NAMED_SHARE * len(told)
    assert any("written at Metadata level" in text for r in results for text in r.remarks)
    report = Judge(reader, resolve_era(reader, None, None)).report()
    assert report.divergences == []
    foreign = [j for j in report.judgements if j.verdict is Verdict.FOREIGN]
    assert sum("the audit log names" in j.why for j in foreign) > len(foreign) // 2
