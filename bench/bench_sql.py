"""Every example query on a trace multiplied to a million observations, beside DuckDB's read_json.

The JSON lines of one recorded trace are repeated with other namespaces, uids and revisions until
there are enough, imported, and each example is timed over the trace (the views, read from Parquet)
and over the same rows read with read_json from the JSON lines, the question and the SQL being the
same: there the rows that the views are made from are a view over read_json.

    python bench/bench_sql.py [--lines 1000000] [--source DIR] [--work DIR] [--runs 3] [--only A,B]
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.multiply import multiplied  # noqa: E402
from tracekit.sql.catalog import examples  # noqa: E402
from tracekit.sql.session import Session  # noqa: E402
from tracekit.trace.format.model import TraceHeader  # noqa: E402
from tracekit.trace.importers.source import LineSource  # noqa: E402
from tracekit.trace.importers.watch import WatchImporter  # noqa: E402
from tracekit.trace.writing.writer import TraceWriter  # noqa: E402

#: Their rows are computed by tracekit, and cannot be asked of JSON lines: by a replay, whose
#: verdicts are kept beside the trace, and by the schedules, in each session anew.
COMPUTED_ONES = ("missed-ticks", "late-ticks", "divergences", "controller-lag")


def multiply(source: Path, target: Path, lines: int) -> int:
    """Write copies of the source's lines until there are enough; how many there are then."""
    log, written = source / "watch.jsonl.zst", 0
    copies = -(-lines // sum(1 for _ in multiplied(log, 1)))
    with target.open("w", encoding="utf-8") as out:
        for line in multiplied(log, copies):
            out.write(line)
            written += 1
    return written


def import_lines(lines: Path, trace: Path, version: str) -> None:
    header = TraceHeader(kubernetes_version=version)
    importer = WatchImporter(lambda: TraceWriter(trace, header, session={"source": "bench"}))
    importer.run([LineSource(str(lines), lambda _: None)])


def json_session(lines: Path) -> Session:
    """A session whose rows come out of read_json: every column by a JSON path, as one writes it."""
    session = Session([], write=True)
    session.connection.execute(json_rows_sql(lines))
    return session


def json_rows_sql(lines: Path) -> str:
    t = "(epoch_ns(try_cast({} AS TIMESTAMP_NS)))"
    text = "(object->>'$.{}')".format
    number = "try_cast(object->>'$.{}' AS BIGINT)".format

    def stamp(path: str) -> str:
        return t.format(f"(object->>'$.{path}')")

    conditions = """list_transform(from_json(object->'$.status.conditions',
      '[{"type":"VARCHAR","status":"VARCHAR","reason":"VARCHAR","message":"VARCHAR",
         "lastProbeTime":"VARCHAR","lastTransitionTime":"VARCHAR"}]'),
      lambda c: {'type': c.type, 'status': c.status, 'reason': c.reason, 'message': c.message,
        'last_probe_ns': epoch_ns(try_cast(c.lastProbeTime AS TIMESTAMP_NS)),
        'last_transition_ns': epoch_ns(try_cast(c.lastTransitionTime AS TIMESTAMP_NS))})"""
    containers = """list_transform(from_json(object->'$.status.containerStatuses',
      '[{"name":"VARCHAR","restartCount":"BIGINT","state":{"terminated":{"exitCode":"BIGINT",
         "signal":"BIGINT","reason":"VARCHAR","finishedAt":"VARCHAR","startedAt":"VARCHAR"}}}]'),
      lambda c: {'name': c.name, 'init': false, 'restart_count': c.restartCount,
        'state': CASE WHEN c.state.terminated IS NOT NULL THEN 'terminated' END,
        'exit_code': c.state.terminated.exitCode, 'signal': c.state.terminated.signal,
        'reason': c.state.terminated.reason,
        'started_ns': epoch_ns(try_cast(c.state.terminated.startedAt AS TIMESTAMP_NS)),
        'finished_ns': epoch_ns(try_cast(c.state.terminated.finishedAt AS TIMESTAMP_NS))})"""
    managers = """list_transform(from_json(object->'$.metadata.managedFields',
      '[{"manager":"VARCHAR","operation":"VARCHAR","subresource":"VARCHAR","time":"VARCHAR"}]'),
      lambda m: {'manager': m.manager, 'operation': m.operation, 'subresource': m.subresource,
        'time_ns': epoch_ns(try_cast(m.time AS TIMESTAMP_NS))})"""
    owner = "(object->'$.metadata.ownerReferences[0]')"
    columns = {
        "seq": "seq",
        "stream": "resource",
        "type": "type",
        "recv_ns": "recv",
        "raw": "object::VARCHAR",
        "kind": "CASE resource WHEN 'jobs' THEN 'Job' WHEN 'pods' THEN 'Pod' WHEN 'cronjobs' "
        "THEN 'CronJob' WHEN 'events' THEN 'Event' WHEN 'leases' THEN 'Lease' END",
        "namespace": text("metadata.namespace"),
        "name": text("metadata.name"),
        "uid": text("metadata.uid"),
        "rv": number("metadata.resourceVersion"),
        "job": f"CASE WHEN resource = 'jobs' THEN {text('metadata.name')} "
        f"WHEN resource = 'pods' AND ({owner}->>'$.kind') = 'Job' THEN {owner}->>'$.name' "
        "WHEN (object->>'$.involvedObject.kind') = 'Job' THEN object->>'$.involvedObject.name' END",
        "cronjob": f"CASE WHEN resource = 'cronjobs' THEN {text('metadata.name')} "
        f"WHEN resource = 'jobs' AND ({owner}->>'$.kind') = 'CronJob' THEN {owner}->>'$.name' END",
        "generation": number("metadata.generation"),
        "created_ns": stamp("metadata.creationTimestamp"),
        "deleted_ns": stamp("metadata.deletionTimestamp"),
        "finalizers": "from_json(object->'$.metadata.finalizers', '[\"VARCHAR\"]')",
        "owner_kind": f"{owner}->>'$.kind'",
        "owner_uid": f"{owner}->>'$.uid'",
        "labels": "(object->'$.metadata.labels')::VARCHAR",
        "annotations": "(object->'$.metadata.annotations')::VARCHAR",
        "managers": managers,
        "spec": "(object->'$.spec')::VARCHAR",
        "phase": text("status.phase"),
        "reason": "coalesce(object->>'$.status.reason', object->>'$.reason')",
        "message": "coalesce(object->>'$.status.message', object->>'$.message')",
        "start_ns": stamp("status.startTime"),
        "conditions": conditions,
        "active": number("status.active"),
        "ready": number("status.ready"),
        "succeeded": number("status.succeeded"),
        "failed": number("status.failed"),
        "terminating": number("status.terminating"),
        "completion_ns": stamp("status.completionTime"),
        "completed_indexes": text("status.completedIndexes"),
        "failed_indexes": text("status.failedIndexes"),
        "uncounted_succeeded": "from_json(object->'$.status.uncountedTerminatedPods.succeeded', "
        "'[\"VARCHAR\"]')",
        "uncounted_failed": "from_json(object->'$.status.uncountedTerminatedPods.failed', "
        "'[\"VARCHAR\"]')",
        "node_name": text("spec.nodeName"),
        "pod_ready": "len(list_filter(from_json(object->'$.status.conditions', "
        '\'[{"type":"VARCHAR","status":"VARCHAR"}]\'), lambda c: c.type = \'Ready\' '
        "AND c.status = 'True')) > 0",
        "containers": containers,
        "restarts": number("status.containerStatuses[0].restartCount"),
        "completion_index": "try_cast(object->>'$.metadata.annotations.\"batch.kubernetes.io/"
        "job-completion-index\"' AS BIGINT)",
        "involved_kind": text("involvedObject.kind"),
        "involved_namespace": text("involvedObject.namespace"),
        "involved_name": text("involvedObject.name"),
        "involved_uid": text("involvedObject.uid"),
        "event_type": "CASE WHEN resource = 'events' THEN object->>'$.type' END",
        "count": number("count"),
        "first_ns": stamp("firstTimestamp"),
        "last_ns": stamp("lastTimestamp"),
        "component": text("source.component"),
        "holder": text("spec.holderIdentity"),
        "acquire_ns": stamp("spec.acquireTime"),
        "renew_ns": stamp("spec.renewTime"),
        "lease_transitions": number("spec.leaseTransitions"),
    }
    made = ",\n".join(f"{expression} AS {name}" for name, expression in columns.items())
    return f"""CREATE OR REPLACE VIEW internal._rows AS
      SELECT 'json' AS trace, {made}, NULL::BIGINT AS last_schedule_ns,
        NULL::BIGINT AS last_successful_ns, NULL::VARCHAR AS observed_status,
        NULL::BIGINT AS pod_ready_since_ns, NULL::VARCHAR AS cron_active,
        NULL::BIGINT AS gap_from_ns, NULL::BIGINT AS gap_until_ns, NULL::BIGINT AS gap_last_rv,
        NULL::BIGINT AS gap_next_rv, NULL::VARCHAR AS gap_reason
      FROM (SELECT *, row_number() OVER () AS seq FROM read_json('{lines}',
        format = 'newline_delimited', maximum_object_size = 10000000,
        columns = {{recv: 'BIGINT', resource: 'VARCHAR', type: 'VARCHAR', object: 'JSON'}}))"""


def timed(session: Session, query: str, runs: int) -> tuple[float, float, int]:
    """Median seconds of wall clock and of CPU, and rows of the answer."""
    walls, cpus, rows = [], [], 0
    for _ in range(runs):
        start, cpu = time.perf_counter(), time.process_time()
        rows = session.table(query).num_rows
        walls.append(time.perf_counter() - start)
        cpus.append(time.process_time() - cpu)
    return statistics.median(walls), statistics.median(cpus), rows


def compute(trace: Path, name: str, query: str) -> None:
    """Say what a session's first answer costs: replaying, or reading what an earlier one kept."""
    session = Session([trace])
    start, cpu = time.perf_counter(), time.process_time()
    session.table(query)
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    print(f"{name:<24}{'first':>7}{wall:>8.2f}{cpu:>8.2f}", flush=True)
    session.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--source", type=Path, default=ROOT / "traces/v1.36.3-churn7")
    parser.add_argument("--work", type=Path, help="keep the multiplied files here")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--skip-json", action="store_true")
    parser.add_argument("--only", help="names of examples, with commas")
    options = parser.parse_args()
    work = options.work or Path(tempfile.mkdtemp(prefix="bench-sql-"))
    work.mkdir(parents=True, exist_ok=True)
    lines, trace = work / "watch.jsonl", work / "trace"
    if not lines.exists():
        print(
            f"{multiply(options.source, lines, options.lines):,} lines, {lines.stat().st_size:,} B"
        )
    version = json.loads((options.source / "about.json").read_text())["version"]
    if not trace.exists():
        start = time.perf_counter()
        import_lines(lines, trace, version)
        print(f"imported in {time.perf_counter() - start:.1f} s")
    start = time.perf_counter()
    session = Session([trace])
    print(f"opened in {time.perf_counter() - start:.3f} s")
    over_json = None if options.skip_json else json_session(lines)
    print(
        f"{'example':<24}{'rows':>7}{'wall s':>8}{'cpu s':>8}"
        f"{'json wall':>11}{'cpu':>8}{'ratio':>8}"
    )
    for example in examples():
        if options.only and example.name not in options.only.split(","):
            continue
        if example.name in COMPUTED_ONES:
            compute(trace, example.name, example.sql)
        wall, cpu, rows = timed(session, example.sql, options.runs)
        line = f"{example.name:<24}{rows:>7,}{wall:>8.2f}{cpu:>8.2f}"
        if over_json is not None and example.name not in COMPUTED_ONES:
            json_wall, json_cpu, _ = timed(over_json, example.sql, 1)
            line += f"{json_wall:>11.1f}{json_cpu:>8.1f}{json_cpu / cpu:>7.0f}x"
        print(line, flush=True)
    if options.work is None:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
