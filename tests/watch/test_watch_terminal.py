"""`tracekit watch` on a terminal: a live table of what was found, and the findings above it."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import termios
from pathlib import Path

from tests.support.traces import ROOT
from tests.watch.test_live import lied

_STYLE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def test_the_table_shows_what_was_found_last(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, 160))
    process = subprocess.Popen(
        [sys.executable, "-m", "tracekit", "watch", str(lied().path), "--once"],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"},
    )
    os.close(theirs)
    found = b""
    while part := read_terminal(ours):
        found += part
    os.close(ours)
    assert process.wait() == 0
    shown = _STYLE.sub("", found.decode()).replace("\r", "")
    lines, _, table = shown.rpartition("Jobs wait, certain up to")
    assert re.search(r"2,4\d\d rows, 2 divergences", lines)
    assert re.search(r"Z ERROR TK126 Job \S+: ", lines)  # the line that a pipe would get
    assert "what" in table
    assert len(re.findall(r"^│ \d\d:\d\d:\d\d │ TK\d{3} │", table, re.MULTILINE)) == 12


def read_terminal(terminal: int) -> bytes:
    """What the terminal shows next; nothing once its other end is closed."""
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""
