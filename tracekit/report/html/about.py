"""What a page is about: a part of a trace, with what was found in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from tracekit.answers.findings.diagnosis import Diagnosed, Wanted
from tracekit.answers.model import Finding
from tracekit.answers.pauses import Pause
from tracekit.base.errors import TracekitError
from tracekit.report.html.scope import Scope
from tracekit.sql.session import Session

_MS = 1_000_000

Row = dict[str, Any]

_SPAN = "SELECT min(recv_ns) AS first, max(recv_ns) AS last, min(created_ns) AS born FROM "
#: What was seen for less than that is one look: then times are those that the objects tell.
_LOOK_NS = 1_000 * _MS
_DIVERGENT = """
SELECT trace, controller, kind, namespace, name, uid, action, verdict,
       time_ns AS at_ns, resource_version, subject, why, fields
FROM internal._verdicts WHERE divergent
"""
_VERDICTS = "SELECT kind, namespace, name, action, verdict FROM internal._verdicts"


class About:
    """A part of one trace: what was found in it, its divergences, and its time."""

    def __init__(self, session: Session, scope: Scope, diagnosed: Diagnosed | None) -> None:
        """Without a diagnosis it is what can be said before the trace was judged."""
        self.session = session
        self.scope = scope
        self.diagnosed = diagnosed
        #: Sentences about what is not on the page.
        self.problems = list(session.problems)
        #: When it was looked at, where that was once.
        self.looked_ns: int | None = None
        self.start_ns, self.end_ns = self._span()

    @cached_property
    def found(self) -> list[Finding]:
        """Findings about a part of it, worst first."""
        if self.diagnosed is None:
            return []
        scope = self.scope
        wanted = Wanted(namespace=scope.namespace, times=scope.times)
        return [
            finding
            for finding in self.diagnosed.findings(wanted)
            if any(scope.holds(*target[:3]) for target in finding.objects)
        ]

    @cached_property
    def judged(self) -> dict[str, dict[str, int]] | None:
        """How many verdicts there are, by action and verdict; None: nothing was judged."""
        if not self._is_judged:
            return None
        counts: dict[str, dict[str, int]] = {}
        for kind, namespace, name, action, verdict in self.session.tuples(_VERDICTS):
            if self.scope.holds(kind, namespace, name):
                of_action = counts.setdefault(action, {})
                of_action[verdict] = of_action.get(verdict, 0) + 1
        return counts

    @cached_property
    def divergent(self) -> list[Row]:
        """Verdicts that are divergences, as rows."""
        if not self._is_judged:
            return []
        rows = self.session.rows(_DIVERGENT)
        return [r for r in rows if self.scope.holds(r["kind"], r["namespace"], r["name"])]

    @property
    def pauses(self) -> Sequence[Pause]:
        """When no controller worked."""
        return () if self.diagnosed is None else self.diagnosed.pauses

    def rows(self, query: str) -> list[Row]:
        """The answer to a query; its `{where}` is the part that this is about."""
        return self.session.rows(query.replace("{where}", self.scope.where()), **self.scope.values)

    def each(self, query: str) -> Iterator[tuple[Any, ...]]:
        """The same, row by row, the values in the order of the query."""
        return self.session.tuples(
            query.replace("{where}", self.scope.where()), **self.scope.values
        )

    def ms(self, at_ns: int | None) -> float | None:
        """Milliseconds since this began."""
        return None if at_ns is None else round((at_ns - self.start_ns) / _MS, 3)

    def _span(self) -> tuple[int, int]:
        rows = self.rows(f"{_SPAN} internal._states WHERE {{where}}")
        if rows[0]["first"] is None:  # no Job: all of the trace
            rows = self.session.rows(f"{_SPAN} internal._rows")
        if rows[0]["first"] is None or not self.session.sources:
            return 0, 1
        first, last, born = (rows[0][name] for name in ("first", "last", "born"))
        if last - first < _LOOK_NS and born is not None and born < first:
            self.looked_ns, first = first, born
        return first, max(last, first + 1)

    @cached_property
    def _is_judged(self) -> bool:
        """Whether there are verdicts; a problem is told where the trace cannot be replayed."""
        if self.diagnosed is None:
            return False
        try:
            self.session.compute("verdicts")
        except TracekitError as error:
            self.problems.append(f"no verdicts: {error}")
            return False
        if self.session.problems:  # of a trace that has lost a part nothing is judged
            self.problems += [p for p in self.session.problems if p not in self.problems]
            return False
        return True
