"""Numbers, durations and sizes on the command line at all edges: a value, or a sentence."""

from __future__ import annotations

import math

import click
import pytest

from tests.support.command_tree import options

EDGES = (
    "nan", "inf", "-inf", "1e400", "-1", "0", "-0", "", " ", "9" * 400, "0." + "0" * 400 + "1",
    "\udcff", "\u0663", "0x10", "1_000", "9" * 400 + "d", "0.1B", "9" * 30 + "TiB", "1e-400",
    "9999-12-31", "9999-12-31T23:59:59Z", "-9999999999d", "24:00",
)  # fmt: skip


_KINDS = {"duration", "size", "integer", "integer range", "float"}


#: Every option that takes a number, by its command and name.
_OPTIONS = {
    f"{words} {option.opts[-1]}": option
    for words, option in options()
    if option.type.name in _KINDS and not option.is_flag
}


@pytest.mark.parametrize("text", EDGES)
def test_an_option_takes_it_or_says_why_not(text: str) -> None:
    found = {}
    for name, option in _OPTIONS.items():
        try:
            value = option.type.convert(text, option, None)
        except click.BadParameter:
            continue
        found[name] = value
    endless = {
        name
        for name, value in found.items()
        if isinstance(value, float) and not math.isfinite(value)
    }
    # Refused where it is used, with the option's own limits.
    assert {name.split()[-1] for name in endless} <= {"--clock-offset"}


def test_there_are_options_of_each_sort() -> None:
    kinds = {option.type.name for option in _OPTIONS.values()}
    assert kinds == _KINDS
