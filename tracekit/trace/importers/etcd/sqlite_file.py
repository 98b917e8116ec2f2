"""Opening an SQLite file that anybody may have written: its bytes are read once, none computed.

Pages may lead to each other in any way, so a few of them can stand for rows without an end; SQLite
itself looks for that only when it is asked to check.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from tracekit.trace.format.limits import ROW_BYTES_MAX

SQLITE_MAGIC: Final = b"SQLite format 3\0"
#: Steps of SQLite's machine that a file may take: reading a row takes fewer than ten a byte.
_STEPS_MIN: Final = 20_000_000
_STEPS_A_BYTE: Final = 10
_STEPS_AT_ONCE: Final = 10_000
_WITHOUT_END: Final = "its pages lead to each other without an end"


@contextmanager
def stored_table(path: Path, table: str) -> Iterator[sqlite3.Connection]:
    """A connection that reads the table of that name; texts are bytes.

    Raises:
        DatabaseError: It is no whole table of stored columns.
    """
    uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    left = (_STEPS_MIN + _STEPS_A_BYTE * path.stat().st_size) // _STEPS_AT_ONCE

    def is_over() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    with closing(sqlite3.connect(uri, uri=True)) as connection:
        connection.text_factory = bytes
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, ROW_BYTES_MAX)
        connection.set_progress_handler(is_over, _STEPS_AT_ONCE)
        try:
            _check(connection, table)
            yield connection
        except sqlite3.OperationalError as error:
            if left < 0:
                raise sqlite3.DatabaseError(_WITHOUT_END) from error
            raise


def _check(connection: sqlite3.Connection, table: str) -> None:
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA ignore_check_constraints = ON")  # a check may be dear
    if not _is_plain(connection, table):
        raise sqlite3.DatabaseError(f"{table} is no table of stored columns")
    said = bytes(connection.execute(f"PRAGMA quick_check({table})").fetchone()[0])
    if said != b"ok":
        first = said.decode("utf-8", "replace").splitlines()[-1]
        raise sqlite3.DatabaseError(f"{table} is damaged: {first}")


def _is_plain(connection: sqlite3.Connection, table: str) -> bool:
    """Whether what has the name is stored: a view or a computed column may have no end."""
    (tables,) = connection.execute(
        "SELECT count(*) FROM sqlite_master "
        "WHERE name = ? AND type = 'table' AND sql LIKE 'CREATE TABLE%'",
        (table,),
    ).fetchone()
    columns = connection.execute(f"PRAGMA table_xinfo({table})").fetchall()
    return bool(tables) and all(hidden == 0 for *_, hidden in columns)


def beside(path: Path) -> Path | None:
    """The log of what was written last, where one lies beside the file and holds something."""
    log = path.with_name(f"{path.name}-wal")
    try:
        return log if log.stat().st_size else None
    except OSError:
        return None
