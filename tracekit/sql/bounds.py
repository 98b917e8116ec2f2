"""How long a query may take, and how much memory in all: bounds that no function of it escapes.

DuckDB's own limit of memory counts what its operators hold; not the texts and lists that a single
call of a function makes, nor the answer. The system counts all of it, and refuses: to DuckDB and to
Arrow that is memory which is not there, an error like any other.
"""

from __future__ import annotations

import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import duckdb

from tracekit.base.durations import span
from tracekit.sql.messages import QueryError

#: A choice: as much again for the answer, twice as much for what functions make.
_TIMES_THE_LIMIT: Final = 4
_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
#: More than any machine has: what `-1` comes to, too.
_NO_BOUND: Final = 1 << 60
_STATUS: Final = Path("/proc/self/status")
#: An interruption meets one step of a query; the next may begin just then.
_AGAIN_S: Final = 1.0


class Bounds:
    """What queries of a session may take; without a time they end when they like."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, timeout_s: float | None) -> None:
        self._connection = connection
        self._timeout_s = timeout_s

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep one query within the bounds; for the main program, whose process they are of.

        Raises:
            QueryError: It was ended, as its time was over.
        """
        with _in_time(self._connection.interrupt, self._timeout_s), _data(self._most_bytes()):
            yield

    def _most_bytes(self) -> int:
        found = self._connection.execute("SELECT current_setting('memory_limit')").fetchall()
        number, unit = str(found[0][0]).split()
        return _TIMES_THE_LIMIT * int(float(number) * 1024 ** _UNITS.index(unit))


@contextmanager
def _in_time(interrupt: Callable[[], None], timeout_s: float | None) -> Iterator[None]:
    ended, late = threading.Event(), threading.Event()

    def end() -> None:
        wait_s = timeout_s
        while not ended.wait(wait_s):
            late.set()
            interrupt()
            wait_s = _AGAIN_S

    timer = threading.Thread(target=end, name="deadline", daemon=True)
    if timeout_s is not None:
        timer.start()
    try:
        yield
    # What an interruption is depends on what DuckDB was at.
    except (KeyboardInterrupt, duckdb.Error, RuntimeError) as error:
        if not late.is_set():
            raise
        raise QueryError(
            f"the query was ended after {span(1e9 * (timeout_s or 0))}: ask about less (--from, "
            "--to, -n), or give it more time with --timeout"
        ) from error
    finally:
        ended.set()
        if timeout_s is not None:
            timer.join()


@contextmanager
def _data(most_bytes: int) -> Iterator[None]:
    """Let this process have so many bytes more than it has, where the system counts them."""
    used = _used_bytes()
    if used is None or most_bytes >= _NO_BOUND:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = used + most_bytes
    for limit in (soft, hard):
        if limit != resource.RLIM_INFINITY:
            wanted = min(wanted, limit)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _used_bytes() -> int | None:
    """What RLIMIT_DATA counts; None where the system does not tell."""
    try:
        lines = _STATUS.read_text("ascii", "replace").splitlines()
    except OSError:
        return None
    found = next((line.split()[1] for line in lines if line.startswith("VmData:")), None)
    return None if found is None else int(found) << 10
