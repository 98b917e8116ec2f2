"""Prometheus metrics of a live judge."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from tracekit.base.http_serving import PageServer
from tracekit.watch.events import ClusterEvents
from tracekit.watch.live import LiveJudge
from tracekit.watch.webhook import Webhook

_NS = 1e9


class WatchCollector:
    """Turns the state of a live judge into metric families."""

    def __init__(
        self, live: LiveJudge, webhook: Webhook | None = None, events: ClusterEvents | None = None
    ) -> None:
        self.live = live
        self._webhook, self._events = webhook, events

    def collect(self) -> Iterator[Metric]:
        """Read everything once."""
        counts, waiting, now_ns = self.live.counts, self.live.waiting, time.time_ns()
        divergences = CounterMetricFamily(
            "tracekit_divergences",
            "Divergences of a controller from its rules.",
            labels=["controller", "action", "verdict"],
        )
        for what, count in sorted(counts.divergences.items()):
            divergences.add_metric(list(what), count)
        findings = CounterMetricFamily(
            "tracekit_findings", "Findings that were told.", labels=["id"]
        )
        for name, count in sorted(counts.findings.items()):
            findings.add_metric([name], count)
        yield from (divergences, findings)
        yield CounterMetricFamily(
            "tracekit_missed_runs",
            "Times at which a CronJob was due and not started, by no rule of its own.",
            counts.missed_runs,
        )
        yield GaugeMetricFamily(
            "tracekit_backlog_jobs", "Jobs that wait for their first status.", waiting.count
        )
        yield GaugeMetricFamily(
            "tracekit_oldest_stuck_job_seconds",
            "For how long the first of them has waited.",
            waiting.longest_ns(now_ns) / _NS,
        )
        yield CounterMetricFamily("tracekit_judged_rows", "Rows that were taken in.", counts.rows)
        yield GaugeMetricFamily(
            "tracekit_judged_behind_seconds",
            "So old is the latest row that was taken in.",
            max(0.0, (now_ns - self.live.now_ns) / _NS) if self.live.now_ns else 0.0,
        )
        if self._webhook is not None:
            posts = CounterMetricFamily("tracekit_webhook", "Posts of news.", labels=["result"])
            posts.add_metric(["sent"], self._webhook.sent)
            posts.add_metric(["failed"], self._webhook.failed)
            yield posts
        if self._events is not None:
            written = CounterMetricFamily("tracekit_event", "Events of news.", labels=["result"])
            for result, count in self._events.results().items():
                written.add_metric([result], count)
            yield written


def serve(collector: Any, *, address: str, port: int) -> PageServer:
    """Serve /metrics until the server is closed."""
    registry = CollectorRegistry()
    registry.register(collector)
    ProcessCollector(registry=registry)
    pages = {"/metrics": lambda: (200, CONTENT_TYPE_LATEST, generate_latest(registry))}
    return PageServer(pages, address=address, port=port, option="--metrics")
