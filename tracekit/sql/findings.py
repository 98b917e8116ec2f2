"""The findings of a session's one trace, looked at whole or in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracekit.answers.findings.baseline import Baseline
from tracekit.answers.findings.diagnosis import Diagnosed, Wanted, diagnose, diagnosed
from tracekit.answers.model import Finding
from tracekit.answers.parts import OnePart, Parts
from tracekit.answers.trace_model import Facts
from tracekit.base.collecting import collecting_rarely
from tracekit.sql.diagnosed import facts_from, not_judged_because
from tracekit.sql.kept_cases import kept_diagnosis

if TYPE_CHECKING:
    from tracekit.sql.session import Session

#: Of so many rows the objects are all held at once, in about 600 MiB.
_AT_ONCE_ROWS = 131_072


@collecting_rarely()
def findings_of(
    session: Session,
    wanted: Wanted = Wanted(),  # noqa: B008 - frozen
    baseline: Baseline | None = None,
) -> list[Finding]:
    """The findings of a session's one trace, worst first.

    What a selector or a baseline leaves out is told by its objects: then all are looked at.
    """
    if wanted.selector is None and baseline is None:
        return diagnosis_of(session).findings(wanted)
    return diagnose(parts_from(session), wanted, baseline)


@collecting_rarely()
def diagnosis_of(session: Session, facts: Facts | None = None) -> Diagnosed:
    """All that is found in a session's one trace, for whoever asks about parts of it.

    Of a whole trace it is kept beside the verdicts. `facts`: all of its, where they are there.
    """

    def made() -> Diagnosed:
        return diagnosed(parts_from(session) if facts is None else OnePart(facts))

    source = session.whole_trace
    snapshot = None if source is None else source.snapshot
    # Its verdicts come first: with them comes what there is to know about the rules.
    if snapshot is None or not_judged_because(session) is not None or session.problems:
        return made()
    return kept_diagnosis(snapshot, session.rules, made)


def parts_from(session: Session) -> Parts:
    """What the findings look at, out of a session over one trace; a large one comes in parts."""
    source = session.whole_trace
    if source is None or sum(file.segment.rows for file in source.files) <= _AT_ONCE_ROWS:
        return OnePart(facts_from(session))
    from tracekit.sql.facts_in_parts import FactsInParts  # noqa: PLC0415 - of large traces alone

    return FactsInParts(session, source)
