"""What an import found, put together and lost: said at its end, stored in the trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tracekit.base.coverage import Scope
from tracekit.trace.importers.refusals import Refusal

#: So many problems have words of their own: a source chooses its kinds, names and files.
_WORDS_MAX: Final = 1_000
_OTHERS: Final = "problems of still other kinds"


class Problems(Counter[str]):
    """Problems by their words; of too many different words the later are counted together."""

    def __setitem__(self, words: str, times: int) -> None:
        if words not in self and len(self) >= _WORDS_MAX:
            words, times = _OTHERS, self[_OTHERS] + times
        super().__setitem__(words, times)


@dataclass(slots=True)
class ImportResult:
    """What an import found; the closing lines on stderr and `info` are made from it."""

    #: The kind of source, in the words of the command line.
    kind: str = ""
    #: Shapes that were recognised, with how many documents each had.
    shapes: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    #: Whether another source is put beside it: then it may tell less than a trace needs.
    beside: bool = False
    #: When the record that it is put beside begins and ends, Unix ns, as far as that is known.
    beside_ns: tuple[int, int] | None = None
    #: When what is read was printed, where who asks says that.
    looked_ns: int | None = None
    streams: Counter[str] = field(default_factory=Counter)
    #: Problems by their words, with how often each was seen.
    problems: Problems = field(default_factory=Problems)
    gaps: int = 0
    #: Deletions found by comparing a relist with what was known.
    synthesized: int = 0
    #: States that were put together, by what from.
    derived: Counter[str] = field(default_factory=Counter)
    #: Requests kept as such, by what became of them.
    calls: Counter[str] = field(default_factory=Counter)
    unparsed: int = 0
    #: Streams of which the source holds nothing, and why.
    not_recorded: dict[str, str] = field(default_factory=dict)
    #: Why the times of the rows are not those at which things happened; empty if they are.
    times: str = ""
    #: Of a source without receive times: the latest time that an object tells, Unix ns.
    newest_ns: int | None = None
    #: Why objects that were there before the source begins are known only once somebody wrote them;
    #: empty if the source lists them.
    unlisted: str = ""
    #: Why nothing of it is a state; empty if something is.
    stateless: str = ""
    #: The controller manager's flags, as far as the source tells them: values by name.
    controller_flags: dict[str, str] = field(default_factory=dict)
    #: Answers of an API server that came in place of objects.
    refusals: list[Refusal] = field(default_factory=list)
    #: What is worth knowing of it besides, as sentences.
    remarks: list[str] = field(default_factory=list)
    #: What lists that do not say it asked for, where the user says so.
    scope: Scope | None = None

    def note_written(self, rows: int, unread: Mapping[str, int]) -> None:
        """Take over what the trace's writer says: its rows, and why objects cannot be read."""
        self.rows = rows
        for why, count in unread.items():
            self.problems[f"objects kept as text that nobody reads (UNPARSED): {why}"] += count

    def document(self) -> Mapping[str, Any]:
        """As it stands in the trace's header."""
        return {
            "kind": self.kind,
            "shapes": dict(self.shapes),
            "rows": self.rows,
            "streams": dict(self.streams),
            "derived": dict(self.derived),
            "calls": dict(self.calls),
            "gaps": self.gaps,
            "unparsed": self.unparsed,
            "problems": dict(self.problems),
            "remarks": list(self.remarks),
        }
