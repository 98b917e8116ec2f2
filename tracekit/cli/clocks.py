"""How far the recorder's clock was off, as `tracekit info` prints it."""

from __future__ import annotations

from typing import Any, TextIO

from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.check.replay.commit_times import Epoch, RecorderClock
from tracekit.report.table import write_line

_MS: int = NS_PER_S // 1_000
_UNKNOWN = "unknown: too few times of the API server's to compare receive times with"


def clock_document(clock: RecorderClock) -> dict[str, Any]:
    """The clock as it is printed with `-o json`; times are RFC 3339, offsets seconds."""
    return {
        "epochs": [
            {
                "from": format_rfc3339(epoch.from_ns),
                "until": format_rfc3339(epoch.until_ns),
                "ahead_s": _seconds(epoch.ahead_ns) if epoch.evidence else None,
                "evidence": epoch.evidence or None,
            }
            for epoch in clock.epochs
        ],
        "api_servers_apart_s": _seconds(clock.servers_apart_ns),
    }


def write_clock(clock: RecorderClock, out: TextIO) -> None:
    """Print the same for people; nothing where no row has a time."""
    if not clock.epochs:
        return
    out.write("\n")
    write_line("The recorder's clock", out, style="bold")
    for number, epoch in enumerate(clock.epochs):
        since = f"set anew, from {format_rfc3339(epoch.from_ns)} on: " if number else ""
        write_line(f"{since}{_sentence(epoch)}", out)
    if clock.servers_apart_ns:
        apart = _seconds(clock.servers_apart_ns)
        write_line(f"clocks of API servers are {apart:g} s apart, or more", out)


def _sentence(epoch: Epoch) -> str:
    if not epoch.evidence:
        return _UNKNOWN
    off_s = _seconds(epoch.ahead_ns)
    way = "or more behind" if off_s < 0 else "or less ahead"
    return f"{abs(off_s):.3f} s {way}, by {epoch.evidence}; taken as that"


def _seconds(ns: int) -> float:
    return round(ns / _MS) / 1_000
