"""The formats that are text: Chrome's JSON, OpenTelemetry's JSON, JSON lines and CSV."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from tracekit import __version__
from tracekit.base.escaping import for_csv, for_json
from tracekit.report.documents import json_text
from tracekit.report.export.happenings import Happenings, Job, Mark, Pod, Span, flat
from tracekit.report.rows import plain

#### Chrome's trace event format ####


def write_chrome(found: Happenings, out: TextIO) -> None:
    """JSON that chrome://tracing, Perfetto and speedscope open; one event a line."""
    out.write('{"displayTimeUnit":"ms","otherData":')
    out.write(_json({"trace": found.title, "kubernetes_version": found.version}))
    out.write(',"traceEvents":[\n')
    lines = enumerate(_chrome_events(found))
    out.writelines((",\n" if number else "") + _json(event) for number, event in lines)
    out.write("\n]}\n")


def _chrome_events(found: Happenings) -> Iterator[dict[str, Any]]:
    process: dict[str, int] = {}
    thread = 0
    for job in found.jobs:
        if job.namespace not in process:
            process[job.namespace] = len(process) + 1
            yield _named("process_name", process[job.namespace], 0, f"namespace {job.namespace}")
        pid, thread = process[job.namespace], thread + 1
        yield _named("thread_name", pid, thread, f"Job {job.name}")
        yield from _complete(job.life, "job", pid, thread)
        for mark in job.marks:
            yield from _instant(mark, pid, thread)
        for pod in job.pods:
            thread += 1
            yield _named("thread_name", pid, thread, f"pod {pod.name}")
            for span in (pod.life, *pod.phases):
                yield from _complete(span, "pod" if span is pod.life else "phase", pid, thread)


def _named(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _complete(span: Span, category: str, pid: int, tid: int) -> Iterator[dict[str, Any]]:
    place = {"pid": pid, "tid": tid, "ts": span.from_ns / 1000}
    yield {
        "ph": "X", "name": span.name, "cat": category, **place,
        "dur": (span.until_ns - span.from_ns) / 1000, "args": dict(span.attributes),
    }  # fmt: skip
    yield from _flows(span, place)


def _instant(mark: Mark, pid: int, tid: int) -> Iterator[dict[str, Any]]:
    place = {"pid": pid, "tid": tid, "ts": mark.at_ns / 1000}
    yield {
        "ph": "i", "s": "t", "name": mark.name, "cat": mark.kind, **place,
        "args": dict(mark.attributes),
    }  # fmt: skip
    yield from _flows(mark, place)


def _flows(source: Span | Mark, place: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for link in source.causes:
        yield {"ph": "s", "id": link, "name": "cause", "cat": "flow", **place}
    for link in source.caused_by:
        yield {"ph": "f", "bp": "e", "id": link, "name": "cause", "cat": "flow", **place}


#### OpenTelemetry ####


def write_otlp(found: Happenings, out: TextIO) -> None:
    """OTLP JSON, one ExportTraceServiceRequest a line (a Job each), as collectors write files."""
    for job in found.jobs:
        resource = {
            "service.name": "kubernetes-batch",
            "k8s.namespace.name": job.namespace,
            "k8s.job.name": job.name,
            "k8s.job.uid": job.uid,
            "k8s.cronjob.name": job.cronjob,
        }
        scope = {"name": "tracekit", "version": __version__}
        request = {
            "resourceSpans": [
                {
                    "resource": {"attributes": _attributes(resource)},
                    "scopeSpans": [{"scope": scope, "spans": list(_otlp_spans(job))}],
                }
            ]
        }
        out.write(_json(request) + "\n")


def _otlp_spans(job: Job) -> Iterator[dict[str, Any]]:
    trace_id = _identity("trace", job.uid, length=32)
    root = _identity("job", job.uid)
    failed = job.life.attributes.get("outcome") == "Failed"
    yield _otlp_span(
        trace_id, root, None, job.life, "k8s.job.", failed=failed,
        events=[_otlp_event(mark) for mark in job.marks],
    )  # fmt: skip
    for pod in job.pods:
        yield from _otlp_pod(pod, trace_id, root)


def _otlp_pod(pod: Pod, trace_id: str, parent: str) -> Iterator[dict[str, Any]]:
    identity = _identity("pod", pod.uid)
    failed = pod.life.attributes.get("phase") == "Failed"
    yield _otlp_span(trace_id, identity, parent, pod.life, "k8s.pod.", failed=failed)
    for number, span in enumerate(pod.phases):
        child = _identity("phase", pod.uid, str(number))
        yield _otlp_span(trace_id, child, identity, span, "k8s.pod.")


def _otlp_span(
    trace_id: str,
    identity: str,
    parent: str | None,
    span: Span,
    prefix: str,
    *,
    failed: bool = False,
    events: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "traceId": trace_id,
        "spanId": identity,
        "name": span.name,
        "kind": 1,  # internal
        "startTimeUnixNano": str(span.from_ns),
        "endTimeUnixNano": str(span.until_ns),
        "attributes": _attributes({prefix + k: v for k, v in span.attributes.items()}),
        "events": events or [],
        "status": {"code": 2, "message": str(span.attributes.get("reason", ""))} if failed else {},
    }
    if parent is not None:
        found["parentSpanId"] = parent
    return found


def _otlp_event(mark: Mark) -> dict[str, Any]:
    return {
        "timeUnixNano": str(mark.at_ns),
        "name": f"{mark.kind}: {mark.name}",
        "attributes": _attributes(mark.attributes),
    }


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": k, "value": _any_value(v)} for k, v in values.items() if v is not None]


def _any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": str(value)}


def _identity(*parts: str | None, length: int = 16) -> str:
    """The same id for the same object in every export."""
    return hashlib.sha256("\0".join(part or "" for part in parts).encode()).hexdigest()[:length]


#### Rows ####

_COLUMNS = ("time_ns", "until_ns", "what", "namespace", "job", "object", "name", "attributes")


def write_jsonl(found: Happenings, out: TextIO) -> None:
    """One object a line, in order of time."""
    out.writelines(_json(row) + "\n" for row in flat(found))


def write_csv(found: Happenings, out: TextIO) -> None:
    """One row each, in order of time; `attributes` is JSON."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in flat(found):
        cells = [row[name] for name in _COLUMNS[:-1]]
        attributes = json.dumps(plain(row["attributes"]), ensure_ascii=False, sort_keys=True)
        attributes = for_json(attributes)  # which for_csv leaves as it is
        writer.writerow([_cell(cell) for cell in (*cells, attributes)])


def _cell(value: Any) -> Any:
    return for_csv(value) if isinstance(value, str) else "" if value is None else value


def _json(value: Any) -> str:
    return json_text(plain(value))
