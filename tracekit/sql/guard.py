"""Read-only: which statements may run when nobody asked for writing.

The whole text is parsed before anything of it runs, and DuckDB's own tree of each statement is
looked at: only queries pass, all the way down. (A statement inside EXPLAIN, or a COPY, INSERT or
DELETE as a part of a WITH, writes as well, and DuckDB takes both for reading.) Nor may a query call
what runs a text that it is given (`json_execute_serialized_sql`), or what makes a table beside its
rows (`read_csv` with `store_rejects`). Besides, a session is locked to the files of its traces
(`handles.py`), and rows are fetched in a transaction that only reads.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import Any, Final

import duckdb
import orjson

from tracekit.sql.messages import QueryError

#: The nodes that a query is made of (DuckDB's QueryNodeType); all others write.
_QUERY_NODES: Final = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
#: Words that a PIVOT may not hold outside of quotes: DuckDB gives no tree of it.
_WRITING: Final = {
    *("alter", "attach", "call", "checkpoint", "copy", "create", "delete", "detach", "drop"),
    *("execute", "export", "import", "insert", "install", "load", "merge", "pragma", "prepare"),
    *("reset", "set", "truncate", "update", "use", "vacuum"),
}
#: DuckDB's table functions that only make rows of what they are given, or of its catalogue. The
#: others open files, run a text that they are given, or change the session.
_TABLE_FUNCTIONS: Final = {
    *("generate_series", "histogram", "histogram_values", "json_each", "json_tree", "range"),
    *("repeat", "repeat_row", "summary", "unnest", "icu_calendar_names", "pg_timezone_names"),
    *("duckdb_columns", "duckdb_constraints", "duckdb_dependencies", "duckdb_functions"),
    *("duckdb_indexes", "duckdb_keywords", "duckdb_memory", "duckdb_prepared_statements"),
    *("duckdb_schemas", "duckdb_sequences", "duckdb_tables", "duckdb_types", "duckdb_views"),
    *("pragma_table_info", "pragma_version"),
}
#: What DuckDB is set to names folders of whoever runs it.
_SETTINGS: Final = {"current_setting"}
#: Table functions, and DuckDB's own views and macros with what each is made of.
_THERE: Final = """
    SELECT function_name, function_type IN ('table', 'pragma'),
           CASE WHEN internal THEN macro_definition END
    FROM duckdb_functions()
    WHERE function_type IN ('table', 'pragma') OR (internal AND macro_definition IS NOT NULL)
    UNION ALL SELECT view_name, false, sql FROM duckdb_views() WHERE internal
"""
#: What a process found of it, once it looked.
_known: list[tuple[frozenset[str], frozenset[str]]] = []
_SETTING_NAMES: Final = "SELECT name FROM duckdb_settings()"
_CALLED: Final = re.compile(r'(\w+)"?\s*\(')
_SERIALIZE: Final = "SELECT json_serialize_sql(?::VARCHAR)"


def check_read_only(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    """Raise if the text holds anything but statements that read.

    Raises:
        QueryError: it does; the sentence names the first such statement.
        duckdb.ParserException: it cannot be parsed, and so nothing of it may run.
    """
    for text in statements_of(connection, query):
        if not reads(connection, text):
            word = _first_word(text, _forbidden(connection))
            raise QueryError(
                f"{word} is not allowed, a trace is read-only: at a shell, write results with -o "
                "and a redirection, or add --write to let a session write files"
            )


def statements_of(connection: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    """The statements of a text, all of them parsed and none of them run.

    Raises:
        duckdb.ParserException: it cannot be parsed.
    """
    return [statement.query for statement in connection.extract_statements(query)]


def reads(connection: duckdb.DuckDBPyConnection, statement: str) -> bool:
    """Whether a single statement is a query, or EXPLAIN of one."""
    tree = _tree(connection, statement)
    if tree is not None:
        return _only_reads(connection, tree)
    parsed = connection.extract_statements(statement)
    if len(parsed) != 1:
        return False
    try:
        kind = parsed[0].type
    except ValueError:  # one that the Python package does not know
        return False
    if kind == duckdb.StatementType.EXPLAIN:
        return any(_is_query(connection, text) for text in _explained(statement))
    # Of two kinds DuckDB makes several statements: PIVOT is one, what no list of columns has.
    if kind != duckdb.StatementType.MULTI:
        return False
    words = {word.strip('"').lower() for _, word in _words(statement)}
    return not words & (_WRITING | _forbidden(connection))


def _only_reads(connection: duckdb.DuckDBPyConnection, tree: Any) -> bool:
    """Whether a query, by its tree, is made of what reads alone."""
    nodes = [*_nodes(tree)]
    if any(kind.endswith("_NODE") and kind not in _QUERY_NODES for kind, _ in nodes):
        return False
    of_tables = [node["function"] for kind, node in nodes if kind == "TABLE_FUNCTION"]
    shown = [node for kind, node in nodes if kind == "SHOW_REF" and node.get("query") is None]
    calls = {str(node.get("function_name")).lower() for kind, node in nodes if kind == "FUNCTION"}
    tables = {str(node.get("table_name")).lower() for kind, node in nodes if kind == "BASE_TABLE"}
    # Some functions take a text that they are given for a table's name.
    tables |= {text.strip('"').lower() for text in _texts(of_tables)}
    named = {str(function.get("function_name")).lower() for function in of_tables}
    functions, closed = _known_in(connection)
    # One that DuckDB does not have either is a macro of ours, or misspelt.
    if (calls | tables) & closed or named & (functions | closed):
        return False
    return not shown or not _are_settings(connection, shown)


def _forbidden(connection: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """Functions that do more than make values of what they are given."""
    functions, closed = _known_in(connection)
    return functions | closed


def _known_in(connection: duckdb.DuckDBPyConnection) -> tuple[frozenset[str], frozenset[str]]:
    """Table functions that are not allowed, and what is closed.

    Closed is what tells how DuckDB is set, and its own views and macros that are made of such. Both
    are DuckDB's own: a connection that only reads can load no more, and a look takes 30 ms.
    """
    if not _known:
        _known.append(_there(connection))
    return _known[0]


def _there(connection: duckdb.DuckDBPyConnection) -> tuple[frozenset[str], frozenset[str]]:
    there = connection.cursor().execute(_THERE).fetchall()
    tables = {str(name).lower() for name, is_table, _ in there if is_table}
    functions = frozenset(tables - _TABLE_FUNCTIONS)
    forbidden = functions | _SETTINGS
    made = {
        str(name).lower()
        for name, _, text in there
        if text is not None
        and name not in _TABLE_FUNCTIONS
        and forbidden & {*_CALLED.findall(str(text).lower())}
    }
    return functions, frozenset(made | _SETTINGS)


def _is_query(connection: duckdb.DuckDBPyConnection, text: str) -> bool:
    """Whether all of a text is one statement that reads."""
    try:
        return reads(connection, text)
    except duckdb.Error:
        return False


def _tree(connection: duckdb.DuckDBPyConnection, statement: str) -> Any:
    """DuckDB's tree of a query; None of what is none."""
    row = connection.cursor().execute(_SERIALIZE, [statement]).fetchone()
    tree = orjson.loads(row[0]) if row else {"error": True}
    return None if tree["error"] else tree


def _nodes(tree: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The nodes of a tree, each with its type."""
    ahead = [tree]
    while ahead:
        node = ahead.pop()
        if isinstance(node, dict):
            kind = node.get("type")
            if isinstance(kind, str):
                yield kind, node
            ahead += node.values()
        elif isinstance(node, list):
            ahead += node


def _explained(statement: str) -> Iterator[str]:
    """What may stand behind EXPLAIN, its ANALYZE and its options in parentheses."""
    words = _words(statement)[1:]
    if words and words[0][1].lower() in {"analyze", "analyse"}:
        words = words[1:]
    if not words:
        return
    data = statement.encode()
    yield data[words[0][0] :].decode()
    if words[0][1] == "(":
        depth = 0
        for (_, word), (start, _) in pairwise(words):
            depth += {"(": 1, ")": -1}.get(word, 0)
            if depth == 0:
                yield data[start:].decode()
                return


def _are_settings(connection: duckdb.DuckDBPyConnection, shown: list[dict[str, Any]]) -> bool:
    """Whether a `SHOW x` shows a setting of DuckDB's."""
    names = connection.cursor().execute(_SETTING_NAMES).fetchall()
    settings = {str(name).lower() for (name,) in names}
    return any(str(node.get("table_name")).strip('"').lower() in settings for node in shown)


def _texts(tree: Any) -> Iterator[str]:
    ahead = [tree]
    while ahead:
        node = ahead.pop()
        if isinstance(node, str):
            yield node.rpartition(".")[2]
        elif isinstance(node, dict):
            ahead += node.values()
        elif isinstance(node, list):
            ahead += node


def _first_word(statement: str, functions: Collection[str]) -> str:
    """What a statement that is not allowed is called: COPY, if a part of it is one."""
    words = [word for _, word in _words(statement) if word.replace("_", "").isalnum()]
    writing = [word.upper() for word in words if word.lower() in _WRITING]
    calls = [word for word in words if word.lower() in functions]
    plain = [word.upper() for word in words if word.isalpha()]
    return (writing or calls or plain or ["this statement"])[0]


def _words(statement: str) -> list[tuple[int, str]]:
    """The words and signs of a statement with their places in bytes, without strings, comments."""
    data = statement.encode()
    tokens = duckdb.tokenize(statement)
    starts = [start for start, _ in tokens] + [len(data)]
    words = []
    for (start, kind), end in zip(tokens, starts[1:], strict=True):
        text = data[start:end].decode(errors="replace")
        if kind in (duckdb.token_type.keyword, duckdb.token_type.identifier):
            words.append((start, text.split()[0] if text.split() else ""))
        elif kind == duckdb.token_type.operator:
            words.append((start, text.strip()))
    return words
