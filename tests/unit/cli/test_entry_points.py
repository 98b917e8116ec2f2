"""The ways in: the script, and the module where no script is on the PATH."""

from __future__ import annotations

import subprocess
import sys

from tracekit import __version__


def test_the_module_is_the_command_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tracekit", "--version"], capture_output=True, text=True, check=True
    )
    assert __version__ in done.stdout
