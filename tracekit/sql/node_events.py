"""What Events tell of nodes, which have no namespace: asked of all of a trace at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracekit.answers.node_events import REASONS, NodeEvent

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


def node_events(session: Session) -> dict[str, list[NodeEvent]]:
    """By node: what Events tell of trouble with it, and that this was over, by time."""
    found: dict[str, list[NodeEvent]] = {}
    for row in session.rows(_OF_NODES, reasons=[*REASONS]):
        event = NodeEvent(
            row["reason"], row["message"] or "", row["first_ns"],
            max(row["first_ns"], row["last_ns"]), int(row["times"]),
        )  # fmt: skip
        found.setdefault(row["node"], []).append(event)
    return found
