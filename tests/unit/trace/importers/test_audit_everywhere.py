"""Every shipped audit log, imported alone and together with the record of the same time."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.support.traces import import_log
from tests.unit.trace.importers.audit_logs import TRACES, header_of
from tracekit.check.verdict import Reason, Verdict
from tracekit.judge.judged import Judge, resolve_era
from tracekit.trace.format.model import HEADER_NAME
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.reading.reader import TraceReader

ALL = sorted(str(path.parent.relative_to(TRACES)) for path in TRACES.glob("**/audit.jsonl.zst"))
#: The incidents' parts of logs have no Leases: what a restart explains is told by nothing there.
WITHOUT_LEASES = frozenset(name for name in ALL if name.startswith("incidents/"))


def record_of(name: str):
    place = TRACES / name
    return place if (place / HEADER_NAME).is_file() else place / "watch.jsonl.zst"


def imported(name: str, target, *, alone=True):
    log = TRACES / name / "audit.jsonl.zst"
    first, rest = (log, ()) if alone else (record_of(name), (str(log),))
    import_files(ImportRequest([str(first)], target, header_of(name), others=rest))
    return TraceReader(target)


def judged(reader):
    return Judge(reader, resolve_era(reader, None, None)).report()


def objects(reader, stream: str, row_type: str):
    rows = reader.table(("uid",), streams=[stream], types=[row_type]).to_pylist()
    return Counter(row["uid"] for row in rows)


def revisions(reader, stream: str):
    rows = reader.table(("rv", "raw"), streams=[stream], types=["ADDED", "MODIFIED"]).to_pylist()
    found = {}
    for row in rows:
        obj = json.loads(row["raw"])
        obj["metadata"].pop("selfLink", None)  # names the path that was asked for
        found[row["rv"]] = {k: v for k, v in obj.items() if k not in ("kind", "apiVersion")}
    return found


@pytest.mark.parametrize("name", ALL)
def test_alone(name, tmp_path):
    reader = imported(name, tmp_path / "alone")
    report = judged(reader)
    assert report.divergences == []
    verdicts = Counter(judgement.verdict for judgement in report.judgements)
    if name not in WITHOUT_LEASES:
        assert verdicts[Verdict.UNKNOWABLE] <= 0.05 * sum(verdicts.values())
    for judgement in report.judgements:
        if judgement.verdict is Verdict.UNKNOWABLE:
            assert judgement.reason is not None
        elif judgement.verdict is Verdict.FOREIGN:
            assert "the audit log names " in judgement.why
    record = record_of(name)
    whole = name in WITHOUT_LEASES
    seen = TraceReader(record) if whole else import_log(record, tmp_path / "watch", name)
    for stream in ("jobs", "cronjobs"):
        assert revisions(reader, stream) == revisions(seen, stream)
    for stream in ("jobs", "cronjobs", "pods"):
        for row_type in ("ADDED", "DELETED"):
            assert objects(reader, stream, row_type) == objects(seen, stream, row_type)


@pytest.mark.parametrize("name", ALL)
def test_with_the_record(name, tmp_path):
    report = judged(imported(name, tmp_path / "both", alone=False))
    assert report.divergences == []
    for judgement in report.judgements:
        # Who did it, the log tells; which caches a sync had, or how busy its process was, nothing.
        # Whether a request that it has as refused is what was retried, it is not asked yet.
        known = (
            "the Job had ended",
            "a busy process, or it was late",
            "the retry of a sync that left no write",
        )
        assert not judgement.ambiguous or any(why in judgement.why for why in known)
        if judgement.verdict is Verdict.FOREIGN:
            assert "the audit log names " in judgement.why


@pytest.mark.parametrize(
    ("incident", "restarted"), [("counted-twice", 2), ("finalizer-left", 5), ("missed-start", 0)]
)
def test_what_only_a_restart_explains_is_unknowable_without_leases(incident, restarted, tmp_path):
    report = judged(imported(f"incidents/{incident}", tmp_path / "alone"))
    assert report.divergences == []
    told = [j for j in report.judgements if "no Lease tells of restarts" in j.why]
    assert len(told) == restarted
    assert all(judgement.reason is Reason.NOT_RECORDED for judgement in told)
