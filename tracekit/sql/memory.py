"""How much memory a query may take: what does not fit lies in a temporary folder meanwhile."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from tracekit.base.errors import UsageError

if TYPE_CHECKING:
    import duckdb

VARIABLE = "TRACEKIT_SQL_MEMORY"
_DEFAULT = "500MiB"


def bound_memory(connection: duckdb.DuckDBPyConnection) -> None:
    """Give DuckDB as much as `TRACEKIT_SQL_MEMORY` says; it would take most of the machine's.

    DuckDB makes the folder when something does not fit, under `TMPDIR`, and takes it away again.

    Raises:
        UsageError: The variable is no amount of memory.
    """
    import duckdb  # noqa: PLC0415 - for its error; whoever has a connection has imported it

    wanted = os.environ.get(VARIABLE) or _DEFAULT
    try:
        connection.execute("SET memory_limit = ?", [wanted])
    except duckdb.Error as error:
        raise UsageError(
            f"{VARIABLE}={wanted} is no amount of memory: write one like 500MiB or 4GiB"
        ) from error
    folder = Path(tempfile.gettempdir(), f"tracekit-sql-{uuid4().hex}")
    connection.execute("SET temp_directory = ?", [str(folder)])
