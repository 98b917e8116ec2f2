"""Pods that others gave way to: the scheduler's Events name them by their uid alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracekit.answers.evidence import Preemptor

if TYPE_CHECKING:
    from tracekit.sql.session import Session

#: Upstream: pkg/scheduler/framework/preemption (prepareCandidate).
_WORDS: Final = "^Preempted by (?:a )?pod ([0-9a-zA-Z-]+) on node "
_TOLD: Final = """
SELECT regexp_extract(message, $words, 1) AS uid FROM internal._states
WHERE stream = 'events' AND reason = 'Preempted' AND regexp_matches(message, $words)
"""
#: The pod itself, else an Event about it.
_PODS: Final = f"""
WITH told AS ({_TOLD})
SELECT uid, namespace, name, owner_kind, owner_name, 0 AS place FROM internal._states
WHERE stream = 'pods' AND uid IN (SELECT uid FROM told)
UNION ALL
SELECT involved_uid, namespace, involved_name, NULL, NULL, 1 FROM internal._states
WHERE stream = 'events' AND involved_kind = 'Pod' AND involved_uid IN (SELECT uid FROM told)
ORDER BY place
"""  # noqa: S608 - our own words


def preemptors(session: Session) -> dict[str, Preemptor]:
    """By uid: each of them that the record has."""
    if not session.rows(f"{_TOLD} LIMIT 1", words=_WORDS):
        return {}
    found: dict[str, Preemptor] = {}
    for row in session.rows(_PODS, words=_WORDS):
        if row["name"]:
            pod = Preemptor(
                row["namespace"] or "", row["name"], row["owner_kind"], row["owner_name"]
            )
            found.setdefault(row["uid"], pod)
    return found
