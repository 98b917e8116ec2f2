"""Which files of a trace a query broke at: each is decoded alone, by Arrow and by DuckDB.

A file that fits its checksums may be sealed by anybody, and hold pages that one of the two reads
and the other refuses: it is damaged for both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb

from tracekit.sql.catalog import literal
from tracekit.sql.messages import first_of
from tracekit.sql.sources import Source
from tracekit.sql.verified_files import Handles
from tracekit.trace.format.schema import NAMES
from tracekit.trace.format.seal import DamageError
from tracekit.trace.reading.files import SegmentFile

#: Of the question, and of no file.
_ENDED = (duckdb.InterruptException, duckdb.OutOfMemoryException)


def drop_unreadable(
    sources: Sequence[Source],
    connection: duckdb.DuckDBPyConnection,
    handles: Handles,
    wide: Mapping[SegmentFile, SegmentFile],
) -> int:
    """Decode the files to their end and leave out those that break; how many that were."""
    dropped = 0
    for source in sources:
        if source.snapshot is None:
            continue
        before = len(source.files)
        source.snapshot.decode()
        for file in tuple(source.files):
            read = wide.get(file, file)
            if file.is_plain or read not in handles:
                continue  # DuckDB is given what Arrow made of it
            try:
                _decode(connection, handles.name(read), read)
            except DamageError as error:
                source.snapshot.drop(file, error)
        dropped += before - len(source.files)
    return dropped


def _decode(connection: duckdb.DuckDBPyConnection, name: str, file: SegmentFile) -> None:
    # Not counts: they are told from the footer.
    columns = ", ".join(f'bit_xor(hash("{column}"))' for column in NAMES if column in file.columns)
    try:
        query = f"SELECT {columns} FROM read_parquet({literal(name)})"  # noqa: S608 - names of ours
        connection.execute(query).fetchall()
    except _ENDED:
        raise
    except duckdb.Error as error:
        raise DamageError(f"it cannot be decoded: {first_of(error)}") from error
