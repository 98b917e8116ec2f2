"""Last words in an account: what containers that ended had said, as steps. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tracekit.base.kube.decode import as_int, as_map, as_text
from tracekit.base.kube.timestamps import parse_rfc3339
from tracekit.report.narrative import Narrative, Step, in_order

#: So many lines are told; the trace has more (view `logs`).
SHOWN_LINES = 5
_LINE_CHARS_MAX = 300


def add_container_logs(narrative: Narrative, logs: Iterable[tuple[int, Mapping[str, Any]]]) -> None:
    """Add a step for each log of the stream `logs`: (received at, Unix ns; the row's object)."""
    narrative.steps = in_order([*narrative.steps, *(_step(at_ns, log) for at_ns, log in logs)])


def _step(recv_ns: int, log: Mapping[str, Any]) -> Step:
    ended = as_map(log.get("terminated"))
    pod, container = as_text(as_map(log.get("metadata")).get("name")), as_text(log.get("container"))
    at_ns = parse_rfc3339(as_text(ended.get("finishedAt"))) or recv_ns
    code = as_int(ended.get("exitCode"))
    reason = as_text(ended.get("reason"))
    how = "was not seen to end" if code is None else f"ended with exit code {code}"
    if reason and code is not None:
        how += f" ({reason})"
    restart = as_int(log.get("restart"))
    run = f", run {restart + 1}" if restart else ""
    return Step(at_ns, None, f"container {container} of {pod}{run}", how, tuple(last_words(log)))


def last_words(log: Mapping[str, Any]) -> list[str]:
    """The last lines of a log as they are told, or why there are none."""
    gap = log.get("gap")
    if isinstance(gap, str):
        return [f"its log could not be had: {gap}"]
    lines = as_text(log.get("text")).splitlines()
    if not lines:
        return ["it said nothing"]
    shown = [line[:_LINE_CHARS_MAX] for line in lines[-SHOWN_LINES:]]
    more = len(lines) - len(shown)
    reported = [f"said (the last {len(shown)} lines of {len(lines)}):" if more > 0 else "said:"]
    return [*reported, *(f"  {line}" for line in shown)]
