"""What a running recorder says: a live table on a terminal, one line a minute elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from rich.live import Live
from rich.table import Table

from tracekit.base.escaping import for_terminal
from tracekit.cli.units import format_bytes
from tracekit.record.streams.status import StreamState

if TYPE_CHECKING:
    from rich.console import Console

    from tracekit.record.operation.recorder import Recorder

_NS = 1_000_000_000
_LINE_EVERY_S = 60.0
_TABLE_EVERY_S = 0.5


class StatusDisplay:
    """Shows a recorder's state from its ticks."""

    def __init__(
        self,
        recorder: Recorder,
        console: Console,
        *,
        clock_s: Callable[[], float] = time.monotonic,
        line_every_s: float = _LINE_EVERY_S,
    ) -> None:
        self._recorder = recorder
        self._console = console
        self._clock_s = clock_s
        self._line_every_s = line_every_s
        self._shown_s = clock_s()
        self._counts: dict[str, int] = {}
        self._known_state: dict[str, StreamState] = {}
        self._live = (
            Live(console=console, auto_refresh=False, transient=True)
            if console.is_terminal
            else None
        )

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def tick(self) -> None:
        """Show what is due."""
        self._say_changes()
        now_s = self._clock_s()
        elapsed_s = now_s - self._shown_s
        if elapsed_s < (_TABLE_EVERY_S if self._live is not None else self._line_every_s):
            return
        self._shown_s = now_s
        rates = self._rates(elapsed_s)
        if self._live is not None:
            self._live.update(self._table(rates), refresh=True)
        else:
            self._console.print(self._line(rates), highlight=False, markup=False, soft_wrap=True)

    def _rates(self, elapsed_s: float) -> dict[str, float]:
        rates = {}
        for watcher in self._recorder.watchers:
            name, count = watcher.spec.name, watcher.status.observations
            rates[name] = (count - self._counts.get(name, 0)) / elapsed_s
            self._counts[name] = count
        return rates

    def _say_changes(self) -> None:
        """Say once when a stream breaks and once when it is back, whatever the display."""
        for watcher in self._recorder.watchers:
            name, status = watcher.spec.name, watcher.status
            before = self._known_state.get(name)
            now = status.state
            if now not in {StreamState.LIVE, StreamState.RETRYING} or now is before:
                continue
            self._known_state[name] = now
            if now is StreamState.RETRYING:
                self._console.print(
                    for_terminal(f"{name}: {status.last_failure}; retrying"),
                    highlight=False,
                    markup=False,
                    soft_wrap=True,
                )
            elif before is StreamState.RETRYING:
                self._console.print(f"{name}: back", highlight=False, markup=False, soft_wrap=True)

    def _table(self, rates: dict[str, float]) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim")
        for title in ("stream", "state", "obs/s", "obs", "bytes", "silent", "behind", "gaps"):
            table.add_column(title, justify="left" if title in {"stream", "state"} else "right")
        now_ns = time.time_ns()
        for watcher in self._recorder.watchers:
            status = watcher.status
            last_ns = status.last_byte_ns
            up, is_live = watcher.is_up(now_ns), status.state is StreamState.LIVE
            silent = "-" if last_ns is None else f"{(now_ns - last_ns) // _NS}s"
            table.add_row(
                watcher.spec.name,
                status.state.value if up or not is_live else "silent",
                f"{rates[watcher.spec.name]:.1f}",
                f"{status.observations:,}",
                format_bytes(status.received_bytes),
                silent,
                f"{watcher.behind_ns(now_ns) / _NS:.1f}s",
                str(status.gaps),
            )
        feed = self._recorder.feed
        size, lag = format_bytes(feed.trace_bytes), self._lag(now_ns)
        table.caption = f"{feed.trace}: {size}, {lag}; Ctrl-C ends"
        table.caption_justify = "left"
        return table

    def _is_over(self) -> bool:
        """Whether all streams have ended as they should: none is behind, or has to be up."""
        states = {watcher.status.state for watcher in self._recorder.watchers}
        return states == {StreamState.STOPPED}

    def _lag(self, now_ns: int) -> str:
        """Say how far the trace is behind the server, and by which stream."""
        if self._is_over():
            return "recorded, merging its files"
        lag_s, stream = self._recorder.lag_s(now_ns)
        return f"lag {lag_s:.1f}s" + (f" ({stream})" if stream else "")

    def _line(self, rates: dict[str, float]) -> str:
        feed = self._recorder.feed
        per_stream = " ".join(f"{name}={rate:.1f}/s" for name, rate in rates.items())
        gaps = sum(watcher.status.gaps for watcher in self._recorder.watchers)
        now_ns = time.time_ns()
        watchers = () if self._is_over() else self._recorder.watchers
        down = [w.spec.name for w in watchers if not w.is_up(now_ns)]
        total = sum(watcher.status.observations for watcher in self._recorder.watchers)
        line = (
            f"{total} observations, {per_stream}, "
            f"{self._lag(now_ns)}, "
            f"{format_bytes(feed.trace_bytes)}, {gaps} gaps"
        )
        if self._recorder.logs is not None:
            status = self._recorder.logs.status
            line += f", {status.observations} logs ({status.gaps} could not be had)"
        return f"{line}, not up: {', '.join(down)}" if down else line
