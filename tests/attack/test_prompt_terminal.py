"""The attacks of `test_queries` typed at the prompt of a real terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import termios
import threading
from pathlib import Path

import pytest

from tests.attack.test_queries import ATTACKS, NAMES, contents, spelled
from tests.support.traces import ROOT, TRACES, import_log
from tests.watch.test_watch_terminal import read_terminal

_STYLE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r")
_MARK = "SELECT 'still ' || 'here ' || count(*) FROM verdicts;"


@pytest.mark.full
def test_no_attack_at_a_terminal_changes_anything(tmp_path: Path) -> None:
    trace = tmp_path / "traces" / NAMES[0]
    import_log(TRACES / trace.name / "watch.jsonl.zst", trace, trace.name)
    before = contents([trace])
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, 200))
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "tracekit", "sql", str(trace)],
        stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "PAGER": "cat", "PROMPT_TOOLKIT_NO_CPR": "1",
             "XDG_STATE_HOME": str(tmp_path / "state")},
    )  # fmt: skip
    os.close(theirs)
    found = bytearray()
    seen = threading.Condition()

    def listen() -> None:
        while part := read_terminal(ours):
            with seen:
                found.extend(part)
                seen.notify_all()

    threading.Thread(target=listen, daemon=True).start()

    def shown(start: int) -> str:
        return _STYLE.sub("", bytes(found[start:]).decode(errors="replace"))

    def ask(text: str, answer: re.Pattern[str]) -> str:
        """Paste a text, as a terminal does it, and wait for what is printed."""
        with seen:
            start = len(found)
            os.write(ours, f"\x1b[200~{text}\x1b[201~\r".encode())
            assert seen.wait_for(lambda: answer.search(shown(start)), 60), (text, shown(start))
            return shown(start)

    with seen:
        assert seen.wait_for(lambda: "tracekit>" in shown(0), 60), shown(0)
    counted = re.compile(r"still here \d+")
    first = counted.search(ask(_MARK, counted))
    for query in ATTACKS:
        said = ask(f"{spelled(query, trace)}\n;", re.compile(r"^tracekit: .+", re.MULTILINE))
        assert "Traceback" not in said, query
        assert "fault of tracekit" not in said, query
    last = counted.search(ask(_MARK, counted))
    assert first is not None
    assert last is not None
    assert first[0] == last[0]
    os.write(ours, b".quit\r")
    assert process.wait(60) == 0
    os.close(ours)
    assert contents([trace]) == before
