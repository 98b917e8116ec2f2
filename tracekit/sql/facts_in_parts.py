"""The facts of a large trace, a range of its namespaces at a time: their memory is bounded by it.

Each time that somebody goes through them all rows are read once, by namespace (`reader.groups`). A
namespace is never cut: one that has more rows than a part is held whole.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tracekit.answers.facts import facts_of
from tracekit.answers.findings.controllers import WAIT_NS, Spells, spells_of, waits
from tracekit.answers.judgements import Judgements, Listed
from tracekit.answers.trace_model import (
    COLUMNS,
    KEYS,
    TRACKING,
    Facts,
)
from tracekit.base.collecting import collecting_rarely
from tracekit.sql.asked_judgements import AskedJudgements
from tracekit.sql.diagnosed import (
    ASKED_EVENTS,
    Spaces,
    logs_in,
    not_judged_because,
    surroundings,
    ticks_of,
    verdicts_in,
)
from tracekit.sql.kept_judgements import KeptJudgements
from tracekit.trace.format.model import STATE_TYPES
from tracekit.trace.reading.groups import Group
from tracekit.trace.reading.lazy_rows import lazy_rows

if TYPE_CHECKING:
    from tracekit.sql.session import Session
    from tracekit.sql.sources import Source

#: A part ends with the namespace that brings it to so many rows, about 150 MiB as objects.
_PART_ROWS = 32_768
_STREAMS = ("jobs", "pods", "cronjobs", "events")
#: Owners of what has waited that are looked at together.
_WAITERS = 2_000


class _Part(NamedTuple):
    """Rows of whole namespaces."""

    spaces: Spaces
    tables: list[pa.Table]


class FactsInParts:
    """The facts of a session's one trace."""

    def __init__(self, session: Session, source: Source) -> None:
        self._session = session
        self._reader = source.reader()
        self._not_judged = not_judged_because(session)
        self._around = surroundings(session)
        leases = "SELECT {} FROM internal._states WHERE stream = 'leases'"
        rows = lazy_rows([session.columns(leases.format(_COLUMNS))], KEYS)
        judgements = Listed() if self._not_judged else AskedJudgements(session)
        #: What is known of all of it; it has no objects.
        self.whole = self._made(rows, judgements, ticks=())
        self.whole.backlogs = self._backlogs()
        if not self.whole.streams.get("leases"):
            self.whole.writes = self._writes()

    def __iter__(self) -> Iterator[Facts]:
        """The parts, each with what is known of all."""
        groups = self._reader.groups(COLUMNS, streams=_STREAMS, types=sorted(STATE_TYPES))
        for part in _parts(groups):
            made = [self._facts(part)]
            del part
            yield made.pop()  # whoever goes on has done with it: nothing of it stays here

    @collecting_rarely()
    def _facts(self, part: _Part) -> Facts:
        session, spaces = self._session, part.spaces
        judgements: Judgements = Listed()
        if not self._not_judged:
            judgements = KeptJudgements(verdicts_in(session, spaces))
        logs = logs_in(session, spaces) if self.whole.streams.get("logs") else ()
        rows = lazy_rows(map(_asked_for, part.tables), KEYS)
        facts = self._made(rows, judgements, ticks=ticks_of(session, spaces), logs=logs)
        facts.led_but_for(self.whole.pauses)
        facts.backlogs = self.whole.backlogs
        facts.writes = self.whole.writes
        return facts

    def _made(self, rows: Iterable[Any], judgements: Judgements, **more: Any) -> Facts:
        return facts_of(
            rows, judgements=judgements, not_judged=self._not_judged, **more, **self._around
        )

    def _backlogs(self) -> Spells:
        """When many waited for the Job controller, out of those that can have waited for long."""
        pods_of: defaultdict[str, list[str]] = defaultdict(list)
        for owner, pod in self._session.tuples(_CAN_HAVE_WAITED):
            pods_of[owner] += [pod] if pod else []
        owners = iter(sorted(pods_of))

        def waited() -> Iterator[tuple[int, int]]:
            while some := list(islice(owners, _WAITERS)):
                pods = [pod for owner in some for pod in pods_of[owner]]
                yield from waits(self._rows_of([*some, *pods]))

        return spells_of(waited())

    def _rows_of(self, uids: list[str]) -> Facts:
        """Some Jobs and pods, with nothing else."""
        rows = self._session.columns(f"SELECT {_COLUMNS} FROM {_OF_UIDS}", uids=uids)  # noqa: S608
        facts = self._made(lazy_rows([rows], KEYS), Listed(), ticks=())
        facts.led_but_for(self.whole.pauses)
        return facts

    def _writes(self) -> Sequence[int]:
        """When Jobs were written, and their pods created, in order."""
        rows = self._session.columns(_WRITES)
        found: list[int] = rows["recv_ns"].to_pylist()
        return found


_COLUMNS = ", ".join(f'"{name}"' for name in COLUMNS)
_OF_UIDS = """
internal._states WHERE stream IN ('jobs', 'pods') AND uid IN (SELECT unnest($uids))
"""
#: Jobs, and pods with their owners, for which more time than a wait takes lay between what they
#: waited for and what came of it; all of which a list has, too, for it has no order. What is
#: decided by these is decided by `controllers.waits`: this only leaves out what cannot count.
_CAN_HAVE_WAITED = f"""
WITH pods AS (
  SELECT uid, owner_uid, recv_ns, _order, _order // 2 AS revision,
         type = 'LIST' OR coalesce(synthesized, false) AS listed,
         coalesce(phase IN ('Succeeded', 'Failed'), false) AS over,
         type = 'DELETED' OR NOT coalesce(list_contains(finalizers, '{TRACKING}'), false) AS free
  FROM internal._states WHERE stream = 'pods'
),
ends AS (SELECT uid, min(_order) AS ended FROM pods WHERE over GROUP BY uid),
held AS (
  SELECT uid, arg_min(owner_uid, _order) AS owner_uid, bool_or(listed) AS listed,
         min(recv_ns) FILTER (_order = ended) AS ended_ns,
         arg_min(recv_ns, _order) FILTER (free AND revision > ended // 2) AS freed_ns
  FROM pods JOIN ends USING (uid) GROUP BY uid
  HAVING bool_or(NOT free) FILTER (_order = ended)
),
served AS (
  SELECT uid, bool_or(type = 'LIST' OR coalesce(synthesized, false)) AS listed,
         arg_min(recv_ns, _order) AS first_ns,
         arg_min(recv_ns, _order) FILTER (start_ns IS NOT NULL OR type = 'DELETED') AS served_ns
  FROM internal._states WHERE stream = 'jobs' GROUP BY uid
)
SELECT owner_uid AS owner, uid FROM held
WHERE owner_uid IS NOT NULL AND (listed OR freed_ns IS NULL OR freed_ns - ended_ns > {WAIT_NS})
UNION ALL
SELECT uid AS owner, NULL AS uid FROM served
WHERE listed OR served_ns IS NULL OR served_ns - first_ns > {WAIT_NS}
"""  # noqa: S608 - our own names
#: As `trace_model.writes_of` has them.
_WRITES = """
SELECT recv_ns FROM internal._states WHERE stream = 'jobs' AND type IN ('ADDED', 'MODIFIED')
UNION ALL
SELECT arg_min(recv_ns, _order) AS recv_ns FROM internal._states
WHERE stream = 'pods' AND job IS NOT NULL GROUP BY uid
HAVING arg_min(type, _order) IN ('ADDED', 'MODIFIED')
ORDER BY recv_ns
"""


def _parts(groups: Iterable[Group]) -> Iterator[_Part]:
    """Whole namespaces, some at a time."""
    first: str | None = None
    space = ""
    held: list[_Rows] = []
    rows = 0
    for group in groups:
        name = group.namespace or ""
        if rows >= _PART_ROWS and name != space:
            yield _Part(Spaces(first, name), _tables(held))
            first, held, rows = name, [], 0
        space = name
        rows += group.count
        # Most groups are small: those beside each other become one table again.
        if held and held[-1].window is group.window:
            held[-1] = held[-1]._replace(number=held[-1].number + group.count)
        else:
            held.append(_Rows(group.window, group.start, group.count))
    yield _Part(Spaces(first, None), _tables(held))


class _Rows(NamedTuple):
    """Rows of neighbouring groups."""

    window: pa.Table
    begin: int
    number: int


def _tables(held: Iterable[_Rows]) -> list[pa.Table]:
    return [window.slice(begin, number) for window, begin, number in held]


def _asked_for(rows: pa.Table) -> pa.Table:
    """The rows without the Events that no rule asks for."""
    wanted = pc.not_equal(rows["stream"], "events")
    if pc.all(wanted).as_py():
        return rows
    for kind in ASKED_EVENTS:
        columns = [
            pc.is_in(rows[name], value_set=pa.array(values, pa.string()))
            for name, values in kind.items()
        ]
        wanted = pc.or_(wanted, reduce(pc.and_, columns))
    return rows.filter(wanted)
