"""Taking texts apart costs as many steps as there are texts, however many there were before."""

from __future__ import annotations

from unittest.mock import Mock, patch

import pyarrow as pa
import pytest

from tracekit.base.remembered import Remembered
from tracekit.trace.format import outlines, splitting
from tracekit.trace.format.patches import FROM_COLUMNS
from tracekit.trace.format.splitting import split_texts


def _split(texts: list[str]) -> None:
    nothing = [[None] * len(texts) for _ in FROM_COLUMNS]
    patches = split_texts(["pods"] * len(texts), pa.array(texts, pa.string()), nothing)
    assert patches.templates.null_count == 0


def _texts(count: int) -> list[str]:
    """Objects that differ in a uid in a key, a number, and a name, one of three values changing."""
    return [
        f'{{"f:x":{{"k:{{\\"uid\\":\\"{n:08x}-0000-0000-0000-000000000000\\"}}":1}},'
        f'"n":{n},"name":"pod-{n}","phase":"Running"}}'
        for n in range(count)
    ]


@pytest.fixture
def outlined(monkeypatch):
    """Counts the outlines that are made, from none on."""
    made = Mock(side_effect=outlines._named)
    monkeypatch.setattr(outlines, "_OUTLINES", Remembered(made, outlines._REMEMBERED))
    return made


def test_texts_of_one_outline_are_outlined_once(outlined):
    for count in (100, 200, 400):
        with patch.object(splitting, "written", side_effect=splitting.written) as written:
            _split(_texts(count))
        assert outlined.call_count == 1
        assert written.call_count == 3 * count + 1  # the uid, n and name of each; Running once


def test_an_outline_is_found_once_for_all_row_groups(outlined):
    for _ in range(3):
        _split(_texts(50))
    assert outlined.call_count == 1
