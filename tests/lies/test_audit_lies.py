"""Lies planted in what an audit log alone tells: nearly as many are found as in a watch of that time.

What a log lacks are Events, and with them the lies about Events. It names the actor, so nothing that
the controller did can pass as somebody else's.

    python -m tests.lies.test_audit_lies    # the share per kind, beside the watch's
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from zlib import crc32

import orjson
import pytest

from tests.lies import KINDS, Lie, Record, plant
from tests.replay.test_planted_lies import FOUND, PLACES, rules
from tests.replay.test_planted_lies import record as watched
from tests.support.raw_histories import histories_of
from tests.unit.trace.importers.audit_logs import TRACES, header_of
from tracekit.diff.readings import judge_as_known
from tracekit.diff.trace import settled
from tracekit.diff.unrecorded import as_far_as_recorded
from tracekit.judging.run_context import run_context_of
from tracekit.replay.history import Actor
from tracekit.replay.run_context import RunContext
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.reading.reader import TraceReader

EVENT_KINDS = frozenset(kind for kind in KINDS if "event" in kind)
TRIED = [kind for kind in FOUND if kind not in EVENT_KINDS]
_COLUMNS = ("recv_ns", "stream", "type", "raw", "actor", "actor_agent", "seq")
_STATES = ("LIST", "ADDED", "MODIFIED", "DELETED")


@cache
def logged(name: str) -> tuple[Record, RunContext]:
    """The rows of a trace made of the audit log alone, and what it says as a whole."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "trace"
        log = TRACES / name / "audit.jsonl.zst"
        import_files(ImportRequest([str(log)], target, header_of(name)))
        reader = TraceReader(target)
        table = reader.table(_COLUMNS, streams=["jobs", "pods", "namespaces"], types=_STATES)
        rows = [
            {
                "recv": row["recv_ns"],
                "resource": row["stream"],
                "type": row["type"],
                "object": orjson.loads(row["raw"]),
                "actor": Actor(row["actor"] or "", row["actor_agent"] or ""),
            }
            for row in sorted(table.to_pylist(), key=lambda row: row["seq"])
        ]
        return Record(rows), run_context_of(reader)


def accused(rows: list, name: str, context: RunContext | None) -> dict[str, list[str]]:
    """Keys with divergences, each with what diverges."""
    histories, own = histories_of(rows)
    context = context or own
    keys = [judge_as_known(history, rules(name), context) for history in histories]
    found: dict[str, list[str]] = {}
    judgements = [judgement for key in keys for judgement in key.judgements]
    for judgement in settled(judgements, [key.timing for key in keys], context):
        if as_far_as_recorded(judgement, context, ()).divergent:
            where = f"{judgement.object.namespace}/{judgement.object.name}"
            found.setdefault(where, []).append(judgement.action)
    return found


def planted(kind: str, name: str, record: Record) -> tuple[list, Lie] | None:
    rng = random.Random(crc32(f"{kind}/{name}/0".encode()))
    return plant(kind, record, rng)


def is_found(kind: str, name: str, record: Record, context: RunContext | None) -> bool | None:
    """Whether the lie is found, None where there is no place for it; nobody else is accused."""
    lied = planted(kind, name, record)
    if lied is None:
        return None
    rows, lie = lied
    touched = {id(row) for row in record.rows}
    keys = {lie.key, *lie.also}
    own = [row for row in rows if id(row) not in touched or _key(row) in keys or _loose(row)]
    found = accused(own, name, context)
    assert set(found) <= keys, lie.description
    return lie.key in found or bool(lie.doubt)


def _key(row) -> str:
    meta = row["object"].get("metadata") or {}
    if row["resource"] == "jobs":
        return f"{meta.get('namespace')}/{meta.get('name')}"
    owners = meta.get("ownerReferences") or ()
    owner = next((o["name"] for o in owners if o.get("controller")), None)
    return f"{meta.get('namespace')}/{owner}"


def _loose(row) -> bool:
    return row["resource"] != "jobs" and not row["object"].get("metadata", {}).get(
        "ownerReferences"
    )


@pytest.mark.parametrize("kind", TRIED[::4])
def test_a_lie_in_an_audit_log_accuses_its_own_job_only(kind: str) -> None:
    start = crc32(kind.encode()) % len(PLACES)
    for name in (*PLACES[start:], *PLACES[:start]):
        record, context = logged(name)
        found = is_found(kind, name, record, context)
        if found is not None:
            assert found, kind
            return
    pytest.fail("no place for this lie in any of the logs")


def main() -> int:
    counts: Counter[str] = Counter()
    for kind in TRIED:
        for name in PLACES:
            in_log, in_watch = (
                is_found(kind, name, *logged(name)),
                is_found(kind, name, watched(name), None),
            )
            if in_log is None or in_watch is None:
                continue
            counts["tried"] += 1
            counts["log"] += in_log
            counts["watch"] += in_watch
            if in_log != in_watch:
                told = f"{kind:34} {name:14} log {in_log!s:5} watch {in_watch!s:5}\n"
                sys.stdout.write(told)
                sys.stdout.flush()
    sys.stdout.write(f"{dict(counts)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
