"""What the API answers with: verdicts and findings as objects, as tables, for notebooks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from tracekit.answers.model import Finding
from tracekit.base.errors import UsageError
from tracekit.base.escaping import for_html
from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.check.diff.report import DiffReport
from tracekit.check.verdict import Judgement
from tracekit.judge.verdict_table import verdict_table
from tracekit.report.table import counted

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

#: So many rows are in what a notebook shows.
_SHOWN = 20
_WIDTH = 100
_UTC = pa.timestamp("ns", tz="UTC")


class Table(ABC):
    """Something that is also a table, for Arrow, pandas and polars."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame; a UsageError where pandas is not installed."""
        try:
            import pandas  # noqa: F401, ICN001, PLC0415 - whoever asks for it has it
        except ImportError as error:
            raise UsageError("pandas is not installed: pip install pandas") from error
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars DataFrame; a UsageError where polars is not installed."""
        try:
            import polars  # noqa: ICN001, PLC0415 - whoever asks for it has it
        except ImportError as error:
            raise UsageError("polars is not installed: pip install polars") from error
        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)  # noqa: S101 - a table is never a Series
        return frame


@dataclass(frozen=True, slots=True, repr=False)
class Replay(Table):
    """What a replay found: judgements as objects and as tables.

    >>> replay = tracekit.open("demo/lie").replay()
    >>> replay
    <Replay by the rules of v1.36.3: 1,234 actions explained, 5 divergences>
    >>> replay.divergences[0]
    <Judgement missing pod-create of Job t-fixed-completions/three: a pod to be created>
    >>> replay.summary["job"]["pod-create"]["missing"]
    3
    """

    kubernetes_version: str
    report: DiffReport

    @property
    def verdicts(self) -> list[Judgement]:
        """Every action with its verdict, by time."""
        return self.report.judgements

    @property
    def divergences(self) -> list[Judgement]:
        """The actions that the rules do not explain."""
        return self.report.divergences

    @property
    def misfit(self) -> str:
        """How the record as a whole contradicts the rules, in sentences; empty if it does not."""
        return self.report.misfit

    @property
    def summary(self) -> Mapping[str, Mapping[str, Mapping[str, int]]]:
        """Counts by controller, action and verdict."""
        return self.report.summary()

    def to_arrow(self) -> pa.Table:
        """The verdicts as a table: the columns of the view `verdicts`, times in ns."""
        return verdict_table(self.report.judgements).drop_columns(["trace"])

    def _summary(self) -> str:
        found = len(self.divergences)
        verdict = counted(found, "divergence") if found else "no divergence"
        if self.misfit:
            verdict += ", the record contradicts them"
        return (
            f"by the rules of {self.kubernetes_version}: "
            f"{counted(self.report.explained, 'action')} explained, {verdict}"
        )

    def __repr__(self) -> str:
        return f"<Replay {self._summary()}>"

    def _repr_html_(self) -> str:
        rows = [
            (
                j.verdict.value,
                j.action,
                f"{j.object.kind} {j.object.namespace}/{j.object.name}",
                format_rfc3339(j.time_ns) or "",
                j.why,
            )
            for j in self.divergences
        ]
        headings = ("verdict", "action", "object", "time", "why")
        return html_table(f"Replay {self._summary()}", headings, rows)


class Diagnosis(Table, Sequence[Finding]):
    """The findings of a trace, worst first: what `tracekit diagnose` prints.

    >>> found = tracekit.open("demo/lie").diagnose()
    >>> found[0].id, found[0].severity.value, found[0].subject
    ('TK102', 'error', 'Job t-fixed-completions/three')
    >>> found.to_arrow().column_names
    ['id', 'severity', 'subject', 'text', 'objects', 'from', 'until', 'thread']
    """

    def __init__(
        self, findings: Sequence[Finding], trace: str, kubernetes_version: str | None
    ) -> None:
        self._findings = tuple(findings)
        self._trace = trace
        self._version = kubernetes_version

    @overload
    def __getitem__(self, place: int) -> Finding: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Finding]: ...
    def __getitem__(self, place: int | slice) -> Finding | Sequence[Finding]:
        """The finding, or findings, at a place."""
        return self._findings[place]

    def __len__(self) -> int:
        return len(self._findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._findings)

    def text(self, *, verbose: bool = False) -> str:
        """The findings as `tracekit diagnose` prints them; `verbose` is its `-v`."""
        from tracekit.report.findings import text_lines  # noqa: PLC0415 - with all kinds of findings

        return "\n".join(text_lines(self._findings, width=_WIDTH, full=verbose)) + "\n"

    def document(self) -> dict[str, Any]:
        """The document of `tracekit diagnose -o json`, by docs/diagnose.schema.json."""
        from tracekit.report.findings import document  # noqa: PLC0415 - with all kinds of findings

        return document(self._findings, trace=self._trace, kubernetes_version=self._version)

    def to_arrow(self) -> pa.Table:
        """One row for each finding; `objects` are their kinds, namespaces, names and uids."""
        targets = pa.list_(
            pa.struct([(name, pa.string()) for name in ("kind", "namespace", "name", "uid")])
        )
        rows = [
            {
                "id": finding.id,
                "severity": finding.severity.value,
                "subject": finding.subject,
                "text": finding.text,
                "objects": [target._asdict() for target in finding.objects],
                "from": finding.from_ns,
                "until": finding.until_ns,
                "thread": finding.thread,
            }
            for finding in self
        ]
        texts = [(name, pa.string()) for name in ("id", "severity", "subject", "text")]
        schema = pa.schema(
            [
                *texts,
                ("objects", targets),
                ("from", _UTC),
                ("until", _UTC),
                ("thread", pa.int64()),
            ]
        )
        return pa.Table.from_pylist(rows, schema)

    def __repr__(self) -> str:
        worst = f", worst: {self[0].id} {self[0].subject}" if self else ""
        return f"<Diagnosis of {self._trace}: {counted(len(self), 'finding')}{worst}>"

    def _repr_html_(self) -> str:
        rows = [
            (f.severity.value, f.id, f.text, format_rfc3339(f.from_ns) or "", f.rule.todo)
            for f in self
        ]
        title = f"{counted(len(self), 'finding')} of {self._trace}"
        return html_table(title, ("severity", "id", "what", "since", "what to do"), rows)


def html_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for a notebook, of the first rows; nothing of a trace is markup in it."""
    head = "".join(f"<th>{for_html(name)}</th>" for name in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{for_html(cell)}</td>" for cell in row) + "</tr>"
        for row in rows[:_SHOWN]
    )
    left = f"<p>… and {len(rows) - _SHOWN:,} more</p>" if len(rows) > _SHOWN else ""
    table = f"<table><tr>{head}</tr>{body}</table>{left}" if rows else ""
    return f"<p><b>{for_html(title)}</b></p>{table}"
