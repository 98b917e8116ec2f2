"""What Events, and nodes that were listed, tell of nodes: asked of all of a trace at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import orjson

from tracekit.answers.node_events import CORDONED, REASONS, NodeEvent, by_condition, by_taint
from tracekit.answers.trace_model import Seen
from tracekit.base.kube.decode import as_items, as_map, as_text, as_time
from tracekit.base.kube.printed.ages import age_of
from tracekit.base.kube.printed.model import Shown, ShownEvent
from tracekit.base.kube.timestamps import NS_PER_S, parse_rfc3339

if TYPE_CHECKING:
    from tracekit.sql.session import Session

_OF_NODES: Final = """
WITH lasts AS (
  SELECT involved_name AS node, reason, arg_max(message, _order) AS message,
         coalesce(min(first_ns), min(recv_ns)) AS first_ns,
         coalesce(max(last_ns), max(recv_ns)) AS last_ns, max(coalesce("count", 1)) AS times
  FROM internal._states
  WHERE stream = 'events' AND involved_kind = 'Node' AND reason IN (SELECT unnest($reasons))
  GROUP BY node, reason, uid
)
SELECT node, reason, message, first_ns, last_ns, times FROM lasts
WHERE node IS NOT NULL AND first_ns IS NOT NULL ORDER BY node, first_ns, reason, message
"""


_LISTED: Final = """
SELECT name, max(recv_ns) AS at_ns, arg_max(raw, _order) AS raw FROM internal._states
WHERE stream = 'nodes' AND type <> 'DELETED' AND name IS NOT NULL GROUP BY name
"""


def node_events(session: Session, shown: Sequence[Seen]) -> dict[str, list[NodeEvent]]:
    """By node: what Events and its own conditions tell of trouble, and that it was over.

    `shown`: what was printed for people, which may have some.
    """
    found: dict[str, list[NodeEvent]] = {}
    for seen in shown:
        if isinstance(seen.shown, ShownEvent) and seen.shown.kind == "Node":
            _add_shown(found, seen.shown, seen.at_ns)
        elif isinstance(seen.shown, Shown) and seen.shown.kind == "Node":
            _add_conditions(found, seen.shown, seen.at_ns)
    for row in session.rows(_LISTED):
        events = of_listed(row["raw"], row["at_ns"] or 0)
        found.setdefault(row["name"], []).extend(events)
    for row in session.rows(_OF_NODES, reasons=[*REASONS]):
        event = NodeEvent(
            row["reason"], row["message"] or "", row["first_ns"],
            max(row["first_ns"], row["last_ns"]), int(row["times"]),
        )  # fmt: skip
        found.setdefault(row["node"], []).append(event)
    return found


def of_listed(raw: str | bytes | None, at_ns: int) -> Iterator[NodeEvent]:
    """What a node that was listed says of itself: its conditions, and that no pod may come."""
    try:
        node = as_map(orjson.loads(raw or "{}"))
    except ValueError:
        return
    spec, status = as_map(node.get("spec")), as_map(node.get("status"))
    for one in as_items(status.get("conditions")):
        since_ns = as_time(one.get("lastTransitionTime")) or at_ns
        event = by_condition(
            as_text(one.get("type")), as_text(one.get("status")), as_text(one.get("message")),
            since_ns, at_ns,
        )  # fmt: skip
        if event is not None:
            yield event
    listed = as_items(spec.get("taints"))
    taints = {as_text(one.get("key")): as_time(one.get("timeAdded")) for one in listed}
    if spec.get("unschedulable") is True:
        taints.setdefault(CORDONED, None)
    for key, added_ns in taints.items():
        event = by_taint(key, added_ns, at_ns)
        if event is not None:
            yield event


def _add_conditions(found: dict[str, list[NodeEvent]], node: Shown, at_ns: int) -> None:
    """What the conditions of a node that was described say."""
    for one in node.node_conditions:
        since_ns = parse_rfc3339(one.since) if one.since is not None else at_ns
        if since_ns is None or since_ns < 0:
            continue
        event = by_condition(one.type, one.status, one.message or "", since_ns, at_ns)
        if event is not None:
            found.setdefault(node.name, []).append(event)
    for taint in node.node_taints:
        key, _, value = taint.rpartition(":")[0].partition("=")
        # The cluster autoscaler writes when it did that.
        added_ns = int(value) * NS_PER_S if value.isascii() and value.isdigit() else None
        event = by_taint(key, added_ns if (added_ns or 0) <= at_ns else None, at_ns)
        if event is not None:
            found.setdefault(node.name, []).append(event)


def _add_shown(found: dict[str, list[NodeEvent]], event: ShownEvent, at_ns: int) -> None:
    """An Event that was printed: when it was seen first is as old as it was printed to be."""
    if event.reason not in REASONS:
        return
    last, first = age_of(event.age or ""), age_of(event.since or "")
    before_s = max(0, first[0] - last[0]) if last is not None and first is not None else 0
    first_ns = max(0, at_ns - before_s * NS_PER_S)
    made = NodeEvent(event.reason, event.message, first_ns, at_ns, event.count)
    found.setdefault(event.name, []).append(made)
