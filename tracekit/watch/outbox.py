"""News that go out from a thread of its own: retried a few times, never waited for."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque

from tracekit.watch.news import News

#: So many wait; of more the oldest are dropped, and counted.
WAITING_MAX = 256
TRIES = 5
_FIRST_PAUSE_S = 1.0


class NotSent(Exception):  # noqa: N818 (it may be tried again, and then it is none)
    """Something was not taken; the text says why, to a person."""

    def __init__(self, reason: str, *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.is_final = is_final  # it would not be taken another time


class Outbox(ABC):
    """Sends news one after the other."""

    #: What one of them is called, for a person.
    what: str

    def __init__(self, *, pause_s: float = _FIRST_PAUSE_S) -> None:
        self._pause_s = pause_s
        self._waiting: deque[News] = deque()
        self._ready = threading.Condition()
        self._stopping = threading.Event()
        #: Set when there is no time left for what still waits.
        self._over = threading.Event()
        self._sending = False
        self._thread: threading.Thread | None = None
        self.sent = 0
        self.failed = 0
        self.last_error = ""

    @abstractmethod
    def send(self, news: News) -> None:
        """Send it, once.

        Raises:
            NotSent: It was not taken.
        """

    def start(self) -> None:
        """Begin to send."""
        self._thread = threading.Thread(target=self._run, name=self.what, daemon=True)
        self._thread.start()

    def post(self, news: News) -> None:
        """Have it sent soon."""
        with self._ready:
            if len(self._waiting) >= WAITING_MAX:
                self._waiting.popleft()
                self.failed += 1
                self.last_error = "more waited than can be kept"
            self._waiting.append(news)
            self._ready.notify()

    def close(self, timeout_s: float = 30.0) -> None:
        """Send what waits, with the same pauses, for so long, and end; the rest has failed."""
        self._stopping.set()
        with self._ready:
            self._ready.notify()
        if self._thread is None:
            return
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            with self._ready:
                self._over.set()
                self.failed += len(self._waiting) + self._sending
                self._waiting.clear()
                self.last_error = self.last_error or "there was no time left to send it"

    def _run(self) -> None:
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._waiting or self._stopping.is_set())
                if not self._waiting:
                    return
                news = self._waiting.popleft()
                self._sending = True
            is_sent = self._deliver(news)
            with self._ready:
                if self._over.is_set():
                    return  # it has been counted
                self._sending = False
                self.sent += is_sent
                self.failed += not is_sent

    def _deliver(self, news: News) -> bool:
        for attempt in range(TRIES):
            try:
                self.send(news)
            except NotSent as error:
                self.last_error = str(error)
                if error.is_final:
                    return False
            else:
                return True
            if attempt < TRIES - 1 and self._over.wait(self._pause_s * 2**attempt):
                return False
        return False
