"""Texts are remembered up to so many bytes of them, however few they are."""

from __future__ import annotations

from tracekit.base.remembered import Remembered


def test_a_text_that_comes_again_is_made_of_once():
    made = []
    known = Remembered(lambda text: made.append(text) or text.upper(), 10)
    assert [known.of(text) for text in ("ab", "c", "ab", "c")] == ["AB", "C", "AB", "C"]
    assert made == ["ab", "c"]


def test_no_more_is_held_than_so_many_bytes():
    made = []
    known = Remembered(lambda text: made.append(text) or text.upper(), 10)
    for text in ("aaaa", "bbbb", "cccc", "cccc", "aaaa", "d" * 11, "d" * 11):
        assert known.of(text) == text.upper()
        assert sum(map(len, known._known)) <= 10
    assert made == ["aaaa", "bbbb", "cccc", "aaaa", "d" * 11, "d" * 11]
