"""Verdicts as the findings ask for them, of which each question reads its own out of a session."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from tracekit.answers.judgements import Judgements, Key
from tracekit.check.verdict import DIVERGENT, Judgement, Verdict
from tracekit.sql.diagnosed import Spaces, misfit_of, verdicts_in
from tracekit.sql.kept_judgements import KeptJudgements

if TYPE_CHECKING:
    import pyarrow as pa

    from tracekit.sql.session import Session


class AskedJudgements(Judgements):
    """The verdicts of all of a trace, of which each question reads its own."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.misfit = misfit_of(session)

    def _those(self, where: str) -> KeptJudgements:
        return KeptJudgements(verdicts_in(self._session, more=where))

    def everything(self) -> Sequence[Judgement]:
        """All of them."""
        return self._those("true").everything()

    def with_verdicts(self, verdicts: Collection[Verdict]) -> Sequence[Judgement]:
        """Those with one of some verdicts."""
        names = ", ".join(sorted(f"'{verdict.value}'" for verdict in verdicts))
        return self._those(f"verdict IN ({names})").everything()

    def of_write(self, key: Key, action: str, subject: str) -> Sequence[Judgement]:
        """Those about such a write by an object of that namespace and name, of any kind."""
        return KeptJudgements(self._of(key)).of_write(key, action, subject)

    def verdict_of(self, key: Key, action: str, subject: str) -> Verdict | None:
        """The verdict of the first of those; None if there is none."""
        return KeptJudgements(self._of(key)).verdict_of(key, action, subject)

    def _of(self, key: Key) -> pa.Table:
        namespace, name = key
        after = f"{namespace}\0"
        rows = verdicts_in(self._session, Spaces(namespace, after))
        return rows.filter(pc.equal(rows["name"], name))

    def naming(self, keys: Collection[Key]) -> Sequence[Judgement]:
        """Those whose object, or what was acted upon, has a name of one of these, maybe others."""
        names = sorted({name for _, name in keys})
        where = "(name IN (SELECT unnest($names)) OR subject IN (SELECT unnest($names)))"
        return KeptJudgements(verdicts_in(self._session, more=where, names=names)).everything()

    def times_of(self, controller: str) -> Sequence[int]:
        """When a controller wrote as its rules have it, Unix ns, ascending."""
        others = ", ".join(f"'{v.value}'" for v in sorted((*DIVERGENT, Verdict.FOREIGN), key=str))
        query = (
            "SELECT time_ns FROM internal._verdicts "  # noqa: S608 - our own words
            f"WHERE controller = '{controller}' AND verdict NOT IN ({others}) ORDER BY time_ns"
        )
        found = array("q")
        for chunk in self._session.columns(query)["time_ns"].chunks:
            found.extend(chunk.to_pylist())
        return found
