"""Read-only: which statements may run when nobody asked for writing.

DuckDB itself refuses files that are not the trace's once the session is locked. What it cannot
refuse is COPY onto those very files, as a statement of its own, inside EXPLAIN ANALYZE or inside a
WITH: no statement with an unquoted COPY passes, and only kinds of statement that read do.
"""

from __future__ import annotations

import duckdb

from tracekit.sql.messages import QueryError

_READS = {
    duckdb.StatementType.SELECT,
    duckdb.StatementType.EXPLAIN,
    duckdb.StatementType.MULTI,  # what PIVOT becomes
}


def check_read_only(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    """Raise if the query holds a statement that does more than read."""
    for statement in connection.extract_statements(query):
        word = _first_word(statement.query)
        if statement.type not in _READS or _has_copy(statement.query):
            raise QueryError(
                f"{'COPY' if _has_copy(statement.query) else word} is not allowed, a trace is "
                "read-only: write results with -o and a shell redirection, or add --write to let "
                "this session write files"
            )


def _first_word(statement: str) -> str:
    words = _words(statement)
    return words[0].upper() if words else "this statement"


def _has_copy(statement: str) -> bool:
    return any(word.lower() == "copy" for word in _words(statement))


def _words(statement: str) -> list[str]:
    """The unquoted words of a statement, without strings and comments."""
    data = statement.encode()
    tokens = duckdb.tokenize(statement)
    starts = [start for start, _ in tokens] + [len(data)]
    words = []
    for (start, kind), end in zip(tokens, starts[1:], strict=True):
        if kind in (duckdb.token_type.keyword, duckdb.token_type.identifier):
            text = data[start:end].decode(errors="replace").split()
            words.append(text[0] if text else "")
    return words
