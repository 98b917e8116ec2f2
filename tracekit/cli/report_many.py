"""`tracekit report` of many traces: a page for each, in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from tracekit.base.time_input import TimeRange
from tracekit.cli.many import Document, without
from tracekit.cli.targets import opened, unwritable
from tracekit.report.html.data import report_data
from tracekit.report.html.page import report_page
from tracekit.sql.session import Session
from tracekit.trace.stores.namespaces import lacks_namespace
from tracekit.trace.stores.place import is_url
from tracekit.versions.overrides import AskedRules

_INSTEAD = "another folder with -o"


class ReportQuestion(Struct, frozen=True):
    """What is to be on each page, and by which rules."""

    run: ClassVar[str] = "report"

    rules: AskedRules
    within: TimeRange
    namespace: str | None
    no_limits: bool

    def answer(self, word: str) -> Document:
        """The page about one trace."""
        if self.namespace is not None and lacks_namespace(word, self.namespace):
            return without(self.namespace)
        session = Session([word], rules=self.rules)
        try:
            if self.namespace is not None and self.namespace not in session.objects.namespaces:
                return without(self.namespace)
            page = report_page(report_data(session, None, self.within, self.namespace))
            return {"problems": session.problems, "warnings": session.warnings, "page": page}
        finally:
            session.close()


def pages_of(traces: Sequence[str], folder: Path) -> dict[str, Path]:
    """Where the page of each trace goes: what tells it from the others is the name of its file."""
    parts = {trace: _parts(trace) for trace in traces}
    shared = 0
    shortest = min(len(words) for words in parts.values())
    while shared < shortest - 1 and len({words[shared] for words in parts.values()}) == 1:
        shared += 1
    return {
        trace: folder.joinpath(*words[shared:-1], f"{words[-1]}.html")
        for trace, words in parts.items()
    }


def _parts(trace: str) -> list[str]:
    plain = trace.partition("://")[2] if is_url(trace) else str(Path(trace).absolute())
    return [part for part in plain.split("/") if part not in ("", ".", "..")]


def write_pages(
    documents: Sequence[Document], pages: dict[str, Path], *, force: bool
) -> tuple[int, int]:
    """Write the pages that there are; gives how many, and their bytes."""
    count = size = 0
    for found in documents:
        if "page" in found:
            content = found["page"].encode()
            target = pages[found["trace"]]
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise unwritable(target, error, _INSTEAD) from error
            with opened(target, force=force, instead=_INSTEAD) as file:
                file.write(content)
            count, size = count + 1, size + len(content)
    return count, size
