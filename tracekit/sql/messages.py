"""What DuckDB says about a wrong query, with the names that were probably meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tracekit.base.errors import TracekitError
from tracekit.base.suggest import closest
from tracekit.sql.memory import VARIABLE

_MISSING = (
    ("table", re.compile(r"Table with name (?P<name>\S+) does not exist")),
    ("table", re.compile(r"Referenced table \"(?P<name>[^\"]+)\" not found")),
    ("column", re.compile(r"Referenced column \"(?P<name>[^\"]+)\" not found")),
    ("column", re.compile(r"does not have a column named \"(?P<name>[^\"]+)\"")),
    ("function", re.compile(r"(?:\w+ )?Function with name (?P<name>\S+) does not exist")),
)
_HINTS = re.compile(r"^(Did you mean|Candidate (bindings|tables|functions))", re.IGNORECASE)


class QueryError(TracekitError):
    """A query that cannot run; the message has the line with a caret where DuckDB knows it."""

    has_lines = True


def first_of(error: Exception) -> str:
    """The first line of DuckDB's error, without the kind of it."""
    lines = str(error).strip().splitlines()
    return re.sub(r"^\w+( \w+)* Error: ", "", lines[0]) if lines else ""


def explain_error(error: Exception, names: Mapping[str, Iterable[str]]) -> QueryError:
    """DuckDB's error as one for users, with names that were meant, out of `names` by kind."""
    text = str(error).strip()
    if text.startswith("Out of Memory Error"):
        return QueryError(
            f"the query takes more memory than it may: set {VARIABLE}=4GiB, or ask about less "
            "(--from, --to, -n)"
        )
    head, _, place = text.partition("\nLINE ")
    lines = [line for line in head.splitlines() if line.strip()]
    sentence = first_of(error) or "the query failed"
    if "disabled by configuration" in sentence:
        sentence += ": at a shell, add --write to let a session read and write other files"
    parts = [f"{sentence.rstrip('.!')}{_suggestion(text, lines, names)}"]
    if place:
        parts.append(f"LINE {place}")
    return QueryError("\n".join(parts))


def _suggestion(text: str, lines: list[str], names: Mapping[str, Iterable[str]]) -> str:
    for kind, pattern in _MISSING:
        match = pattern.search(text)
        if match is None:
            continue
        name, known = match["name"].strip('"!,'), names[kind]
        if name.lower() in map(str.lower, known):
            continue  # it is one of another table: DuckDB says what there is in this one
        close = closest(name, known)
        if close:
            return f"; did you mean {close}?"
    hints = [line.strip() for line in lines[1:] if _HINTS.match(line.strip())]
    return f" ({hints[0]})" if hints else ""
