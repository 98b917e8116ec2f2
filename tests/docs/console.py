"""The console examples of a page: its commands run in a copy of the traces, and what they print.

A block that begins with ```console holds commands after `$ ` and what they print. A line that is
only `…` stands for any number of lines that the page leaves out.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from click.testing import CliRunner

from tracekit.cli.main import cli

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LEFT_OUT = "…"
#: The terminal of the pages.
WIDTH = {"COLUMNS": "120", "NO_COLOR": "1"}


@dataclass(slots=True)
class Example:
    """One command of a page and the lines that the page says it prints."""

    command: str
    shown: list[str] = field(default_factory=list)


def examples(page: Path) -> Iterator[Example]:
    """The commands of a page, in order; a line that ends with a backslash goes on."""
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        found: Example | None = None
        goes_on = False
        for line in block.splitlines():
            if goes_on:
                assert found is not None
                goes_on = line.endswith("\\")
                found.command += " " + line.removesuffix("\\").strip()
            elif line.startswith("$ "):
                if found is not None:
                    yield found
                goes_on = line.endswith("\\")
                found = Example(line[2:].removesuffix("\\").strip())
            else:
                assert found is not None, f"{page}: a console block begins with a command"
                found.shown.append(line)
        if found is not None:
            yield found


class Console:
    """Runs `tracekit …` and `echo $?`, as a shell would."""

    def __init__(self, environment: Mapping[str, str] = WIDTH) -> None:
        self._environment = environment
        self._status = 0

    def run(self, command: str) -> list[str]:
        """What the command prints on stdout."""
        program, *arguments = shlex.split(command)
        if (program, arguments) == ("echo", ["$?"]):
            return [str(self._status)]
        assert program == "tracekit", command
        environment = dict(os.environ) | dict(self._environment)
        result = CliRunner().invoke(cli, arguments, env=environment, standalone_mode=False)
        if result.exception is not None:
            raise result.exception
        self._status = result.return_value if isinstance(result.return_value, int) else 0
        return [line.rstrip() for line in result.stdout.splitlines()]


def is_shown(shown: list[str], printed: list[str]) -> bool:
    """Whether the lines of a page are those that were printed, but for what it leaves out."""
    parts: list[list[str]] = [[]]
    for line in shown:
        if line == LEFT_OUT:
            parts.append([])
        else:
            parts[-1].append(line)
    if len(parts) == 1:
        return shown == printed
    first, *middle, last = parts
    if printed[: len(first)] != first:
        return False
    at = len(first)
    for part in middle:
        ends = range(at, len(printed) - len(part) + 1)
        found = next((start for start in ends if printed[start : start + len(part)] == part), None)
        if found is None:
            return False
        at = found + len(part)
    return not last or (len(printed) - at >= len(last) and printed[-len(last) :] == last)
