"""Prometheus metrics and /healthz of a running recorder.

The numbers are read from the streams' status when somebody asks; nothing is counted twice.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from tracekit.base.http_serving import PageServer

if TYPE_CHECKING:
    from tracekit.record.operation.recorder import Recorder

_NS = 1e9


class RecorderCollector:
    """Turns the state of a recorder into metric families."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def collect(self) -> Iterator[Metric]:
        """Read everything once."""
        yield from self._streams()
        feed = self._recorder.feed
        yield CounterMetricFamily("tracekit_rows", "Rows written.", feed.rows_written)
        yield CounterMetricFamily("tracekit_flushes", "Flushes of the trace.", feed.flushes)
        yield CounterMetricFamily(
            "tracekit_flush_seconds", "Time spent in flushes.", feed.flush_seconds
        )
        yield GaugeMetricFamily("tracekit_trace_bytes", "Size of the trace.", feed.trace_bytes)
        yield GaugeMetricFamily(
            "tracekit_waiting_rows", "Rows not yet written.", self._recorder.queue.waiting
        )
        yield GaugeMetricFamily(
            "tracekit_lag_seconds",
            "At most so far is the trace behind the server.",
            self._recorder.lag_s(time.time_ns())[0],
        )

        yield from self._logs()

    def _logs(self) -> Iterator[Metric]:
        logs = self._recorder.logs
        if logs is None:
            return
        said = CounterMetricFamily(
            "tracekit_logs", "Logs of containers that ended.", labels=["result"]
        )
        said.add_metric(["written"], logs.status.observations - logs.status.gaps)
        said.add_metric(["missing"], logs.status.gaps)
        yield said
        yield GaugeMetricFamily(
            "tracekit_logs_waiting", "Logs that are being read, or wait for it.", logs.pending
        )

    def _streams(self) -> Iterator[Metric]:
        counters = {
            "observations": "Watch events recorded.",
            "received_bytes": "Bytes received by watches.",
            "bookmarks": "Bookmarks received.",
            "relists": "Lists made.",
            "reconnects": "Watches resumed.",
            "gaps": "Times in which the stream could not be seen.",
            "synthesized_deletes": "Deletes found by comparing a list with what was known.",
            "repeats": "Frames received again and not recorded again.",
            "out_of_order": "Frames older than the one before.",
        }
        for name, text in counters.items():
            family = CounterMetricFamily(f"tracekit_stream_{name}", text, labels=["stream"])
            for watcher in self._recorder.watchers:
                family.add_metric([watcher.spec.name], getattr(watcher.status, name))
            yield family
        failures = CounterMetricFamily(
            "tracekit_stream_failures", "Failures by kind.", labels=["stream", "kind"]
        )
        up = GaugeMetricFamily(
            "tracekit_stream_up", "1 while watched and not silent too long.", labels=["stream"]
        )
        behind = GaugeMetricFamily(
            "tracekit_stream_behind_seconds",
            "For at most so long the server has had what is not here yet.",
            labels=["stream"],
        )
        last = GaugeMetricFamily(
            "tracekit_stream_silence_seconds", "Time since the last byte.", labels=["stream"]
        )
        now_ns = time.time_ns()
        for watcher in self._recorder.watchers:
            status = watcher.status
            up.add_metric([watcher.spec.name], float(watcher.is_up(now_ns)))
            behind.add_metric([watcher.spec.name], watcher.behind_ns(now_ns) / _NS)
            for kind, count in dict(status.failures).items():
                failures.add_metric([watcher.spec.name, kind], count)
            if status.last_byte_ns is not None:
                last.add_metric([watcher.spec.name], (now_ns - status.last_byte_ns) / _NS)
        yield from (failures, up, behind, last)


class MetricsServer(PageServer):
    """Serves /metrics and /healthz until closed."""

    def __init__(self, recorder: Recorder, *, address: str, port: int) -> None:
        registry = CollectorRegistry()
        registry.register(RecorderCollector(recorder))
        ProcessCollector(registry=registry)

        def health() -> tuple[int, str, bytes]:
            kind = "text/plain; charset=utf-8"
            if recorder.is_healthy():
                return 200, kind, b"ok\n"
            return 503, kind, f"dead: {', '.join(recorder.dead_streams())}\n".encode()

        pages = {
            "/metrics": lambda: (200, CONTENT_TYPE_LATEST, generate_latest(registry)),
            "/healthz": health,
        }
        super().__init__(pages, address=address, port=port, option="--metrics")
