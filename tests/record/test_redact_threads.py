"""One redactor, and the threads of all streams."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from threading import Event, Thread

import pytest

from tracekit.record.redaction.redact import Redactor, parse_fields


@pytest.fixture(autouse=True)
def _often_another_thread() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def test_a_text_is_read_while_values_come() -> None:
    """It was "Set changed size during iteration", and the stream listed again, with a gap."""
    redactor = Redactor(b"k" * 32, parse_fields("all"))
    over = Event()
    values = [f"https://{number}" for number in range(20_000)]

    def come() -> None:
        for value in values:
            redactor.secret(value)
        over.set()

    thread = Thread(target=come)
    thread.start()
    try:
        while not over.is_set():
            assert redactor.text("pulling https://example/x failed").startswith("pulling https:")
    finally:
        thread.join()
    assert all(value not in redactor.text(f"at {value} now") for value in values[::1000])
