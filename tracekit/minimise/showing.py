"""What a trace shows: its divergences and findings, each by what makes it the same one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from msgspec import Struct

from tracekit.answers.findings.diagnosis import diagnose
from tracekit.answers.findings.divergences import rule_of
from tracekit.answers.model import Case, Target
from tracekit.check.verdict import Judgement
from tracekit.judge.judged import Judge
from tracekit.sql.trace_model import facts_from_reader
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.reading.table_reader import read_held
from tracekit.versions.era import Era


class Shown(NamedTuple):
    """One divergence or finding; equal ones are the same."""

    rule: str
    kind: str
    namespace: str
    name: str
    #: A divergence: the action, the revision, what was acted upon. Else empty.
    what: tuple[str, ...] = ()
    #: A divergence: the fields that differ. A finding: its claim.
    how: str = ""

    def __str__(self) -> str:
        where = Target(self.kind, self.namespace, self.name)
        action = f", {self.what[0]} at resourceVersion {self.what[1]}" if self.what else ""
        return f"{self.rule} of {where}{action}"

    @property
    def place(self) -> tuple[str, ...]:
        """The same without what may change when others are left out."""
        return (self.rule, self.kind, self.namespace, self.name, *self.what)


def divergence(judgement: Judgement) -> Shown:
    """A divergence as what is shown."""
    where = judgement.object
    fields = "; ".join(f"{f.path}: {f.expected!r} {f.observed!r}" for f in judgement.fields)
    what = (judgement.action, judgement.resource_version, judgement.subject)
    return Shown(
        rule_of(judgement).id, where.kind, where.namespace, where.name, what, fields
    )  # fmt: skip


def finding(case: Case) -> Shown:
    """A finding about one object as what is shown."""
    target = case.target
    return Shown(case.rule.id, target.kind, target.namespace, target.name, (), case.claim)


class Showing(Struct, frozen=True):
    """All that a trace shows."""

    divergences: tuple[Judgement, ...]
    #: Cases of findings, but for those that are made of the divergences.
    cases: tuple[Case, ...]

    @property
    def everything(self) -> list[Shown]:
        """Each divergence and each finding."""
        return [*map(divergence, self.divergences), *map(finding, self.cases)]


def showing(
    table: pa.Table,
    header: TraceHeader,
    era: Era,
    enough: Callable[[Sequence[Judgement]], bool] = lambda _: False,
) -> Showing:
    """Judge rows in file order, as the trace that they would be; `enough` as in `showing_of`."""
    reader = read_held(table, header, Path("rows"))
    return showing_of(reader, Judge(reader, era), enough)


def showing_of(
    reader: TraceReader,
    judge: Judge,
    enough: Callable[[Sequence[Judgement]], bool] = lambda _: False,
) -> Showing:
    """All that a trace shows, by its judge.

    Where the divergences are `enough`, nothing else is looked for.
    """
    judgements = judge.report().judgements
    divergences = tuple(j for j in judgements if j.divergent)
    if enough(divergences):
        return Showing(divergences, ())
    facts = facts_from_reader(reader, judgements, judge.era)
    divergent = {rule_of(j).id for j in divergences}
    return Showing(
        divergences,
        tuple(
            case
            for found in diagnose(facts)
            for case in found.cases
            if case.rule.id not in divergent
        ),
    )
