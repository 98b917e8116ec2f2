"""The README: its examples print what they show, and it stays short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.docs.console import Console, examples, is_shown
from tests.support.traces import ROOT
from tracekit.cli.main import cli
from tracekit.versions.era import NEWEST, OLDEST

README = ROOT / "README.md"
LINES_MAX = 150
#: What needs a cluster stands there too; the tests of the recorder run it.
NEEDS_A_CLUSTER = "tracekit record"


def test_its_examples_print_what_they_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = CliRunner().invoke(cli, ["demo", "-o", "demo"], standalone_mode=False)
    assert made.exception is None
    console = Console()
    recorded = False
    compared = 0
    for example in examples(README):
        recorded = recorded or example.command.startswith(NEEDS_A_CLUSTER)
        if recorded:
            assert example.shown == [], "what needs a cluster shows nothing that nobody checks"
            continue
        printed = console.run(example.command.partition(" #")[0])
        assert is_shown(example.shown, printed), f"{example.command}\nprints\n" + "\n".join(printed)
        compared += 1
    assert compared >= 5


def test_it_names_the_oldest_and_the_newest_version() -> None:
    assert f"({OLDEST.branch} to {NEWEST.branch}, " in README.read_text(encoding="utf-8")


def test_it_is_short_and_begins_with_a_block_to_paste() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) < LINES_MAX
    first = re.search(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert first is not None
    assert first[1] == "sh"
    assert not [line for line in first[2].splitlines() if line.startswith(("$", ">", "…"))]
