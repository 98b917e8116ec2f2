"""`tracekit watch`: verdicts and findings while a record grows."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson
from rich.console import Console
from rich.live import Live
from rich.table import Table

from tracekit.base.errors import TraceFormatError, UsageError
from tracekit.base.escaping import for_json, for_terminal
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.stopping import ENDING, StopRequest, on_signals
from tracekit.cli.completion import complete_trace
from tracekit.cli.connecting import connection_options, take_connection
from tracekit.cli.messages import tell
from tracekit.cli.trace_options import asked_rules, parse_flags, rules_options, tell_warnings
from tracekit.cli.units import DURATION
from tracekit.judge.judged import resolve_era
from tracekit.judge.rolling import SETTLED_NS
from tracekit.record.credentials.options import ConnectOptions
from tracekit.report.table import counted
from tracekit.sql.diagnosed import facts_from
from tracekit.sql.session import Session
from tracekit.trace.format.schema import NAMES
from tracekit.trace.reading.reader import TraceReader
from tracekit.watch.follow import Follower
from tracekit.watch.live import SEEN_COLUMNS, LiveJudge
from tracekit.watch.metrics import WatchCollector, serve
from tracekit.watch.news import News
from tracekit.watch.payloads import FORMATS, payload_of
from tracekit.watch.webhook import Webhook

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracekit.trace.format.model import TraceHeader
    from tracekit.versions.era import Era
    from tracekit.versions.overrides import AskedRules
    from tracekit.watch.events import ClusterEvents
    from tracekit.watch.outbox import Outbox

#: After a turn of judging it rests so many times the processor's time that the turn took, …
_SHARE = 5
#: … but not longer: where there is so much to judge, the delay must not grow with it.
_REST_MAX_S = 30.0
_SHOWN = 12


@click.command("watch")
@click.argument("trace", metavar="TRACE", shell_complete=complete_trace)
@click.option("--poll", type=DURATION, default="1s", show_default=True, help="Look so often.")
@click.option("--duration", type=DURATION, help="End after this time, for example 10m.")
@click.option("--once", is_flag=True, help="End when all that is there by now is judged.")
@click.option("--beside", type=int, hidden=True, help="End with this process, a recorder.")
@click.option("--webhook", metavar="URL", help="POST each finding there, as JSON.")
@click.option(
    "--webhook-format",
    type=click.Choice(FORMATS),
    default="json",
    show_default=True,
    help="Whose webhook it is.",
)
@click.option("--event", "writes_events", is_flag=True, help="Write an Event for each finding.")
@click.option("--metrics-port", type=int, help="Serve /metrics here.")
@click.option("--metrics-address", default="127.0.0.1", help="Address of --metrics-port.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning"]),
    help="Exit 1 after a finding so bad or worse.",
)
@rules_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(["lines", "jsonl"]),
    default="lines",
    show_default=True,
    help="How to print a finding.",
)
@connection_options
def watch(
    *,
    trace: str,
    poll: float,
    duration: float | None,
    once: bool,
    beside: int | None,
    webhook: str | None,
    webhook_format: str,
    writes_events: bool,
    metrics_port: int | None,
    metrics_address: str,
    fail_on: str | None,
    output: str,
    **options: Any,
) -> int:
    """Judge TRACE while it is recorded, and tell what comes up.

    TRACE is a trace, or the folder of `record --rotate`. Each divergence and each finding is told
    once, as soon as it is certain: about 45 s after it happened, of CronJobs 75 s, and that nobody
    leads after 20 s (docs/watch.md). On a terminal a live table, else one line for each. With
    --event each is an Event of its object, too, in the cluster that the options name as kubectl
    has them.
    """
    flags = parse_flags(options["controller_flags"])
    follower = Follower(Path(trace), flags, SEEN_COLUMNS if once else NAMES)
    posts = _posts(webhook, webhook_format)
    asked = (options["kubernetes_version"], options["feature_gates"], options["process_zone"])
    era = resolve_era(TraceReader(follower.trace), *asked)
    tell_warnings(era)
    events = _events(take_connection(options), follower.header(), wanted=writes_events)
    outboxes: list[Outbox] = [outbox for outbox in (posts, events) if outbox is not None]
    loop = _Loop(follower, era, outboxes, output, asked_rules(options) if once else None)
    with ExitStack() as stack:
        if metrics_port is not None:
            collector = loop.collects(posts, events)
            server = serve(collector, address=metrics_address, port=metrics_port)
            stack.callback(server.close)
        for outbox in outboxes:
            outbox.start()
            stack.callback(outbox.close)
        with on_signals(loop.stop, *ENDING):
            loop.run(poll, duration, once=once, beside=beside)
    for outbox in outboxes:
        if outbox.failed:
            tell(f"{counted(outbox.failed, outbox.what)} failed: {outbox.last_error}")
    if events is not None and events.old:
        tell(f"{counted(events.old, 'finding')} of more than an hour ago: no Event was written")
    limit = {"error": ("error",), "warning": ("error", "warning")}.get(fail_on or "", ())
    return 1 if any(loop.worst.get(severity) for severity in limit) else 0


def _posts(url: str | None, form: str) -> Webhook | None:
    """What posts to a URL, if one is given."""
    if url is None:
        if form != "json":
            raise UsageError(f"--webhook-format {form} is how to post: say where with --webhook")
        return None
    return Webhook(url, payload_of(form, os.environ))


def _events(connect: ConnectOptions, header: TraceHeader, *, wanted: bool) -> ClusterEvents | None:
    """What writes Events, if that is asked for."""
    if not wanted:
        if connect != ConnectOptions():
            raise UsageError("only --event speaks to a cluster: give it too, or no connection.")
        return None
    from tracekit.cli.watch_events import cluster_events  # noqa: PLC0415 - its client is slow to import

    return cluster_events(connect, header)


def rest_s(turn_s: float) -> float:
    """How long it rests after a turn that took so much of the processor's time."""
    return min(_SHARE * turn_s, _REST_MAX_S)


class _Loop:
    """Reads, judges and tells, until something ends it."""

    def __init__(
        self,
        follower: Follower,
        era: Era,
        outboxes: Sequence[Outbox],
        output: str,
        whole: AskedRules | None,
    ) -> None:
        """`whole` are the rules by which a trace is looked at once, as `diagnose` does."""
        self._follower, self._era = follower, era
        self._outboxes, self._output, self._whole = outboxes, output, whole
        self._live = LiveJudge(follower.header(), era)
        self._judged = follower.trace
        self._collector: WatchCollector | None = None
        self.worst: dict[str, int] = {}
        self._latest: deque[News] = deque(maxlen=_SHOWN)
        self._stop = StopRequest()
        self._due_s = 0.0
        self._lost = 0

    def collects(self, webhook: Webhook | None, events: ClusterEvents | None) -> WatchCollector:
        """What tells of it as metrics."""
        self._collector = WatchCollector(self._live, webhook, events)
        return self._collector

    def stop(self) -> None:
        """End it soon; may be called from a signal handler."""
        self._stop.set()

    def run(
        self, poll_s: float, duration_s: float | None, *, once: bool, beside: int | None
    ) -> None:
        """Go on until the time is over; `once` until nothing new is there.

        `beside` is the process whose record ends when this is stopped: the rest is judged then.
        """
        console = Console(stderr=True)
        end_s = None if duration_s is None else time.monotonic() + duration_s
        table = None
        if console.is_terminal and sys.stdout.isatty():
            table = Live(console=console, auto_refresh=False)
            table.start()
        try:
            while True:
                if beside is not None and os.getppid() != beside:
                    self.stop()  # a recorder that was killed says nothing
                stopped = self._stop.is_set() or (end_s is not None and time.monotonic() >= end_s)
                ends = once or (beside is not None and stopped)
                more = self._turn(ends=ends)
                if table is not None:
                    table.update(self._shown(), refresh=True)
                if ends and not more:
                    return
                if stopped and not ends:
                    return
                if not more:
                    self._stop.wait(poll_s)
        finally:
            if table is not None:
                table.stop()

    def _turn(self, *, ends: bool) -> bool:
        """Take in what is new, judge and tell; whether there may be more.

        With `ends` all that is there is taken in first, and then judged as the whole that it is.
        """
        more = self._take()
        if ends:
            if not more:
                self._end()
            return more
        if time.monotonic() >= self._due_s:
            spent_s = time.process_time()
            self._tell(self._live.judge())
            # Judging must leave the processor to others, the recorder first of all: by its own
            # time, for on a busy machine the clock counts the time of others.
            self._due_s = time.monotonic() + rest_s(time.process_time() - spent_s)
        self._tell(self._live.leader(time.time_ns()))
        return more

    def _end(self) -> None:
        """Tell the rest of a trace to which nothing is added any more."""
        if self._whole is None:
            self._tell(self._live.judge(last=True))
            return
        session = Session([str(self._judged)], rules=self._whole)
        try:
            whole = facts_from(session)
            if whole.not_judged is not None:
                self._hold_all()
            self._tell(self._live.judge(last=True, whole=whole))
            problems = session.problems
        finally:
            session.close()
        if problems:  # of rows that nobody could believe: it is no answer about the whole
            raise TraceFormatError("; ".join(problems))

    def _hold_all(self) -> None:
        """Take in all rows of what cannot be judged as a whole."""
        again = Follower(self._judged)
        while (rows := again.poll()) is not None:
            self._live.hold(rows)

    def _take(self) -> bool:
        """Take in what is new; whether there may be more."""
        rows = self._follower.poll()
        if rows is not None and self._whole is not None:
            self._live.see(rows)
        elif rows is not None:
            self._tell(self._live.feed(rows))
        elif self._follower.rotated():
            self._end()
            self._live = self._live.renewed(self._follower.header())
            self._judged = self._follower.trace
            if self._collector is not None:
                self._collector.live = self._live
            return True
        if self._follower.lost_rows > self._lost:
            tell(
                f"{self._follower.lost_rows - self._lost} rows are missing, their files are gone: "
                "what they told is not judged"
            )
            self._lost = self._follower.lost_rows
        return rows is not None

    def _tell(self, news: Iterable[News]) -> None:
        for one in news:
            self.worst[one.severity] = self.worst.get(one.severity, 0) + 1
            self._latest.append(one)
            if self._output == "jsonl":
                click.echo(for_json(orjson.dumps(one.document()).decode()))
            else:
                click.echo(for_terminal(one.line))
            sys.stdout.flush()
            for outbox in self._outboxes:
                outbox.post(one)

    def _shown(self) -> Table:
        table = Table("when", "id", "object", "what", title=for_terminal(self._title()))
        for one in self._latest:
            at = time.strftime("%H:%M:%S", time.gmtime(one.at_ns / NS_PER_S))
            table.add_row(at, one.id, for_terminal(one.subject), for_terminal(one.text))
        return table

    def _title(self) -> str:
        live = self._live
        found = sum(live.counts.divergences.values())
        return (
            f"{live.counts.rows:,} rows, {found} divergences, {live.waiting.count} Jobs wait, "
            f"certain up to {SETTLED_NS // NS_PER_S} s ago"
        )
