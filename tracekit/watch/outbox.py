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
        """Send what waits, for so long, and end."""
        self._stopping.set()
        with self._ready:
            self._ready.notify()
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._waiting or self._stopping.is_set())
                if not self._waiting:
                    return
                news = self._waiting.popleft()
            self._deliver(news)

    def _deliver(self, news: News) -> None:
        for attempt in range(TRIES):
            try:
                self.send(news)
            except NotSent as error:
                self.last_error = str(error)
                if error.is_final:
                    break
            else:
                self.sent += 1
                return
            if attempt < TRIES - 1:
                self._stopping.wait(self._pause_s * 2**attempt)
        self.failed += 1
