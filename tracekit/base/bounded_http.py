"""HTTP that ends in time: bounds on a whole request and a whole answer, not on single reads.

A socket's timeout begins anew with every byte, so a server that sends one now and then is never
late, and a compressed answer has a thousand times the bytes that were read. Connections of the
pools here are shut when connecting, or what comes until the end of the head, takes longer than
their timeout; `pieces` and `whole` read a body within a time and a size.

`tracekit.record` and `tracekit.watch`, the rooms with a network, share this one; it knows neither.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

_PIECE_BYTES: Final = 1 << 16
#: Never longer, whatever a server asks for in `Retry-After`.
RETRY_AFTER_MAX_S: Final = 300.0


class TooLate(Exception):  # noqa: N818 - the caller has its own word for it
    """A request was not answered in time."""


class TooLarge(Exception):  # noqa: N818 - as above
    """An answer is larger than what asked for it can take."""


class _Bounded:
    """A connection whose steps end within its timeout."""

    _twin: socket.socket | None = None
    timeout: Any

    def _new_conn(self) -> socket.socket:
        made: socket.socket = super()._new_conn()  # type: ignore[misc]
        # TLS takes the socket away from its object; the twin is of the same connection.
        self._twin = made.dup()
        return made

    def connect(self) -> None:
        with self._in_time():
            super().connect()  # type: ignore[misc]

    def getresponse(self) -> Any:
        with self._in_time():
            return super().getresponse()  # type: ignore[misc]

    def close(self) -> None:
        super().close()  # type: ignore[misc]
        twin, self._twin = self._twin, None
        if twin is not None:
            twin.close()

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        if not isinstance(self.timeout, int | float):
            yield
            return
        with shut_after(self.timeout, self._shut):
            yield

    def _shut(self) -> None:
        if self._twin is not None:
            self._twin.shutdown(socket.SHUT_RDWR)


class _Plain(_Bounded, HTTPConnection):
    pass


class _Tls(_Bounded, HTTPSConnection):
    pass


class _PlainPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Plain


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _Tls


def bound(pool: urllib3.PoolManager) -> urllib3.PoolManager:
    """Have a pool manager make connections that end in time; gives it back."""
    pool.pool_classes_by_scheme = {"http": _PlainPool, "https": _TlsPool}
    return pool


@contextmanager
def shut_after(seconds: float, shut: Callable[[], None]) -> Iterator[None]:
    """Call `shut` from another thread when the block takes longer; then it raises `TooLate`."""
    late = threading.Event()

    def end() -> None:
        late.set()
        with suppress(Exception):  # whatever it is, it is closed already
            shut()

    timer = threading.Timer(max(seconds, 0), end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception as error:
        if late.is_set():
            raise TooLate(f"no answer within {seconds:.3g} s") from error
        raise
    finally:
        timer.cancel()
    if late.is_set():
        raise TooLate(f"no answer within {seconds:.3g} s")


def pieces(
    response: urllib3.BaseHTTPResponse, *, seconds: float, most_bytes: int
) -> Iterator[bytes]:
    """The body of an answer as it comes, decompressed; who takes long over it takes of the time.

    Raises:
        TooLate: it does not end within the time.
        TooLarge: it has more bytes.
    """
    taken = 0
    with shut_after(seconds, response.shutdown):
        for piece in response.stream(_PIECE_BYTES, decode_content=True):
            taken += len(piece)
            if taken > most_bytes:
                raise TooLarge(f"an answer of more than {most_bytes >> 20} MiB")
            yield piece


def whole(response: urllib3.BaseHTTPResponse, *, seconds: float, most_bytes: int) -> bytearray:
    """The body of an answer, decompressed; raises what `pieces` does."""
    data = bytearray()
    for piece in pieces(response, seconds=seconds, most_bytes=most_bytes):
        data += piece
    return data


def retry_after_s(value: str | None) -> float | None:
    """The seconds that a server asks us to wait, never more than `RETRY_AFTER_MAX_S`.

    None where there is no such number; a date is none, as API servers send numbers.
    """
    try:
        seconds = float(value or "")
    except ValueError:
        return None
    if not seconds >= 0:  # negative, or no number
        return None
    return min(seconds, RETRY_AFTER_MAX_S)
