"""A question to one verb, asked in a process of its own that is ended when it takes too long.

Nothing that a trace or a query brings can hold the server: neither its time nor its memory.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Sequence
from threading import Timer
from typing import Final, NamedTuple

from tracekit.base import children

#: More than any document that an answer is cut from needs; a talkative verb is ended.
PRINTED_BYTES_MAX: Final = 64 << 20
_SAID_BYTES_MAX: Final = 16 << 10


class Printed(NamedTuple):
    """What a verb printed."""

    status: int
    data: bytes  # stdout, up to PRINTED_BYTES_MAX
    said: str  # stderr
    is_late: bool = False
    is_cut: bool = False


#: Runs a verb with these words.
Asking = Callable[[Sequence[str]], Printed]


#: Questions that are asked now.
_running: set[subprocess.Popen[bytes]] = set()


def end_all() -> None:
    """End the questions that are asked now: nobody waits for their answers any more."""
    for process in tuple(_running):
        if process.poll() is None:
            children.end(process, its_session=True)


def in_a_process(timeout_s: float) -> Asking:
    """Verbs are run as processes, each ended after so many seconds."""

    def ask(words: Sequence[str]) -> Printed:
        return _run(words, timeout_s)

    return ask


def _run(words: Sequence[str], timeout_s: float) -> Printed:
    with tempfile.TemporaryFile() as said:
        process = children.python("tracekit", *words, stdout=subprocess.PIPE, stderr=said)
        _running.add(process)
        late: list[bool] = []

        def end() -> None:
            if process.poll() is None:
                children.end(process, its_session=True)

        def too_late() -> None:
            late.append(True)
            end()

        timer = Timer(timeout_s, too_late)
        timer.start()
        try:
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            data = process.stdout.read(PRINTED_BYTES_MAX + 1)
            is_cut = len(data) > PRINTED_BYTES_MAX
            if is_cut:
                end()
            status = process.wait()
        finally:
            timer.cancel()
            end()
            _running.discard(process)
        said.seek(0)
        text = said.read(_SAID_BYTES_MAX).decode("utf-8", "replace")
    return Printed(status, data[:PRINTED_BYTES_MAX], text, bool(late), is_cut)
