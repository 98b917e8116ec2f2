"""Ctrl-C while the program is still being imported."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest

from tests.support.traces import ROOT

SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]

#: As a script of `SCRIPTS` begins, with Ctrl-C at the first import of click.
_PRESSED = """
import os, signal, sys

class Pressed:
    def find_spec(self, name, *_):
        if name == "click":
            {press}

signal.signal(signal.SIGINT, signal.{handler})
sys.meta_path.insert(0, Pressed())
sys.argv[1:] = ["--version"]
from {module} import {function}
{function}()
"""
_PRESS = "os.kill(os.getpid(), signal.SIGINT)"
#: A library that does without what it could not import loses what the handler raises.
_SWALLOWED = f"""
            try:
                {_PRESS}
                sum(range(10))
            except BaseException:
                pass"""


def begun(place: str, press: str, handler: str) -> tuple[int, str]:
    module, function = place.split(":")
    code = _PRESSED.format(module=module, function=function, press=press, handler=handler)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("place", sorted(set(SCRIPTS.values())))
@pytest.mark.parametrize("press", [_PRESS, _SWALLOWED], ids=["raised", "swallowed"])
def test_it_ends_without_a_word(place: str, press: str) -> None:
    assert begun(place, press, "default_int_handler") == (130, "")


def test_who_ignores_it_goes_on_doing_so() -> None:
    assert begun(SCRIPTS["tracekit"], _PRESS, "SIG_IGN") == (0, "")
