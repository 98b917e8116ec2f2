"""How far clocks were off, as `tracekit info` prints it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, Final, TextIO

from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.check.replay.clock_notes import Dated
from tracekit.check.replay.commit_times import Timed
from tracekit.check.replay.other_clocks import MANAGER, OtherClock
from tracekit.check.replay.recorder_clock import BY_USER, Epoch
from tracekit.report.table import counted, write_line

_MS: Final = NS_PER_S // 1_000
_UNKNOWN = "unknown: too few times of the API server's to compare receive times with"
#: The kubelets whose clocks are farthest off.
_SHOWN_MAX: Final = 5


def clock_document(times: Timed) -> dict[str, Any]:
    """The clocks as they are printed with `-o json`; times are RFC 3339, offsets seconds."""
    behind_ns = times.servers_behind_ns
    return {
        "epochs": [
            {
                "from": format_rfc3339(epoch.from_ns),
                "until": format_rfc3339(epoch.until_ns),
                "ahead_s": _seconds(epoch.ahead_ns) if epoch.evidence else None,
                "evidence": epoch.evidence or None,
                "date": None
                if dated is None
                else {
                    "least_s": _seconds(dated.least_ns),
                    "most_s": _seconds(dated.most_ns),
                    "answers": dated.answers,
                },
            }
            for epoch, dated in _epochs(times)
        ],
        "api_servers_apart_s": _seconds(times.clock.servers_apart_ns),
        "api_servers_behind_s": None if behind_ns is None else _seconds(behind_ns),
        "others": [
            {
                "kind": other.kind,
                "name": other.name,
                "from": format_rfc3339(times.clock.recorded_ns(other.from_ns)),
                "until": format_rfc3339(times.clock.recorded_ns(other.until_ns)),
                "ahead_s": _seconds(other.ahead_ns),
                "times": other.times,
            }
            for other in times.others
        ],
    }


def write_clocks(times: Timed, out: TextIO) -> None:
    """Print the same for people; nothing where no row has a time."""
    clock = times.clock
    if not clock.epochs:
        return
    out.write("\n")
    write_line("The recorder's clock", out, style="bold")
    for number, (epoch, dated) in enumerate(_epochs(times)):
        since = f"set anew, from {format_rfc3339(epoch.from_ns)} on: " if number else ""
        write_line(f"{since}{_sentence(epoch)}", out)
        if dated is not None:
            least, most = _off(dated.least_ns), _off(dated.most_ns)
            answers = counted(dated.answers, "answer")
            write_line(f"by the Date of {answers}: {least} to {most} of the API server's", out)
    if clock.servers_apart_ns:
        apart = _seconds(clock.servers_apart_ns)
        write_line(f"clocks of API servers are {apart:g} s apart, or requests took as long", out)
    others = list(_others(times))
    if others:
        out.write("\n")
        write_line("Other clocks, beside the one that is judged on", out, style="bold")
        for sentence in others:
            write_line(sentence, out)


def _epochs(times: Timed) -> Iterator[tuple[Epoch, Dated | None]]:
    yield from zip_longest(times.clock.epochs, times.dated[: len(times.clock.epochs)])


def _others(times: Timed) -> Iterator[str]:
    """A sentence on the clock of API servers, and on each kubelet's, those farthest off first."""
    managers = [other for other in times.others if other.kind == MANAGER]
    if managers and times.servers_behind_ns is not None:
        yield f"API server: {_off(-times.servers_behind_ns)}; taken as that"
    if len(managers) > 1:
        yield from (_other(other) for other in managers)
    kubelets = sorted(
        (other for other in times.others if other.kind != MANAGER),
        key=lambda other: (-abs(other.ahead_ns), other.name),
    )
    yield from (_other(other) for other in kubelets[:_SHOWN_MAX])
    if len(kubelets) > _SHOWN_MAX:
        yield f"{counted(len(kubelets) - _SHOWN_MAX, 'kubelet')} less far off"


def _other(other: OtherClock) -> str:
    side = "or less" if other.ahead_ns < 0 else "or more"
    return f"{other.kind} {other.name}: {_off(other.ahead_ns)}, {side}, by {other.times:,} times"


def _off(ahead_ns: int) -> str:
    off_s = _seconds(ahead_ns)
    return f"{abs(off_s):.3f} s {'behind' if off_s < 0 else 'ahead'}"


def _sentence(epoch: Epoch) -> str:
    if not epoch.evidence:
        return _UNKNOWN
    off_s = _seconds(epoch.ahead_ns)
    if epoch.evidence == BY_USER:
        return f"{_off(epoch.ahead_ns)}, as {epoch.evidence} says"
    way = "or more behind" if off_s < 0 else "or less ahead"
    return f"{abs(off_s):.3f} s {way}, by {epoch.evidence}; taken as that"


def _seconds(ns: int) -> float:
    return round(ns / _MS) / 1_000
