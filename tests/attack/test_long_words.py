"""Texts of one word that is as long as they are: no pattern looks at it from each of its letters.

docs/trust.md: "no small file is hours of work".
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.attack.answers import run
from tracekit.record.redaction.secrets import scrubbed
from tracekit.trace.importers.kcmlog import read_line

_MOST_S = 5
_KLOG = b'E1121 05:42:42.000000       1 job_controller.go:100] "Error syncing job" err="'


@pytest.mark.parametrize(
    ("look", "text"),
    [
        (lambda text: read_line(_KLOG + text.encode(), None), "1" * 200_000),
        (lambda text: read_line(_KLOG + text.encode(), None), "a." * 100_000),
        (lambda text: scrubbed(text, str), "token://" + "a." * 100_000),
        (lambda text: scrubbed(text, str), "token://" + "a-" * 100_000),
    ],
    ids=["digits in klog", "names in klog", "names in a message", "dashes in a message"],
)
def test_a_long_word_takes_no_more_than_its_length(
    look: Callable[[str], object], text: str
) -> None:
    begun_s = time.monotonic()
    look(text)
    assert time.monotonic() - begun_s < _MOST_S


@pytest.mark.parametrize("kind", ["any", "kubectl", "audit"])
def test_a_string_that_is_cut_off_among_escaped_quotes(tmp_path: Path, kind: str) -> None:
    """As kubectl's last-applied-configuration is full of them."""
    log = tmp_path / "log"
    log.write_text('{"apiVersion":"v1","kind":"List","items":[{"a":"' + '\\"' * 100_000)
    begun_s = time.monotonic()
    code, _, err = run("import", kind, str(log), "-o", str(tmp_path / "out"))
    assert time.monotonic() - begun_s < _MOST_S
    assert code == 2
    assert len(err) < 1_000


def test_a_password_is_found_wherever_its_url_begins() -> None:
    for before in ("", "at ", "1.", "x=", "(", "-"):
        text = scrubbed(f"{before}https://user:pass-word@host/", lambda _: "gone")
        assert text == f"{before}https://gone@host/"
