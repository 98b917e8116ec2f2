"""Taking texts apart costs as many steps as there are texts, however many there were before."""

from __future__ import annotations

from unittest.mock import patch

from tracekit.trace.format import patches
from tracekit.trace.format.patches import FROM_COLUMNS, Splitter

NOTHING = dict.fromkeys(FROM_COLUMNS)


def _outlines(texts: list[str]) -> tuple[int, int]:
    """How many layouts are made of some texts, and how many values are written."""
    whole = Splitter._layout
    with (
        patch.object(Splitter, "_layout", autospec=True, side_effect=whole) as layouts,
        patch.object(patches, "_written", side_effect=patches._written) as written,
    ):
        splitter = Splitter()
        assert all(splitter.split("pods", text, NOTHING) is not None for text in texts)
    return layouts.call_count, written.call_count


def _texts(count: int) -> list[str]:
    """Objects that differ in a uid in a key, a number, and a name, one of three values changing."""
    return [
        f'{{"f:x":{{"k:{{\\"uid\\":\\"{n:08x}-0000-0000-0000-000000000000\\"}}":1}},'
        f'"n":{n},"name":"pod-{n}","phase":"Running"}}'
        for n in range(count)
    ]


def test_texts_of_one_outline_are_outlined_once():
    for count in (100, 200, 400):
        layouts, written = _outlines(_texts(count))
        assert layouts == 1
        assert written == 3 * count + 2  # the uid, n and name of each; 1 and Running once


def test_an_outline_is_found_once_for_all_row_groups():
    patches._outline.cache_clear()
    for _ in range(3):
        splitter = Splitter()
        assert all(splitter.split("pods", text, NOTHING) is not None for text in _texts(50))
    assert patches._outline.cache_info().misses == 1
