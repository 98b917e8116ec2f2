"""Foreign text for terminals, spreadsheets, Markdown, JSON, pages and shells."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from tracekit.base.escaping import (
    for_csv,
    for_html,
    for_json,
    for_markdown,
    for_script,
    for_shell,
    for_terminal,
    is_shell_word,
)

#: What controls, reorders or shows nothing, by Unicode's own tables of this day. What nobody has
#: been given (`Cn`) differs from one version of Unicode to the next.
HIDDEN = frozenset(
    regex.findall(
        r"[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\u2800]",
        "".join(map(chr, range(0x110000))),
    )
)


@pytest.mark.parametrize(
    "escape",
    [
        for_terminal, for_csv, for_markdown, for_html, for_shell,
        lambda text: for_json(json.dumps(text, ensure_ascii=False)),
        lambda text: for_script(json.dumps(text, ensure_ascii=False)),
        lambda text: json.loads(for_script(json.dumps(text))),
    ],
)  # fmt: skip
def test_nothing_hidden_is_left(escape: Callable[[str], str]) -> None:
    assert {"\u034f", "\u115f", "\u17b4", "\u180b", "\u3164", "\ufe0f", "\uffa0"} < HIDDEN
    left = HIDDEN & set(escape("".join(sorted(HIDDEN))))
    assert left <= {"\n", "\t"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain äöü 日本語 😀 ½", "plain äöü 日本語 😀 ½"),
        ("two\u3000words\u00a0here", "two\u3000words\u00a0here"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\x9b31m\x7f", "\\x9b31m\\x7f"),
        ("a\r\nb\tc", "a\\r\\nb\\tc"),
        ("\u202egpj.exe\u2066", "\\u202egpj.exe\\u2066"),
        ("a\u200db\u00ad\ufeff", "a\\u200db\\xad\\ufeff"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("\u2028\u2029", "\\u2028\\u2029"),
    ],
)
def test_a_terminal_is_shown_what_it_would_obey(text: str, shown: str) -> None:
    assert for_terminal(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error file=a.py::no", "\\x3a:error file=a.py::no"),
        ("a ::set-output name=x::y", "a \\x3a:set-output name=x::y"),
        ("::stop-commands::word", "\\x3a:stop-commands::word"),
        ("##[error]no", "\\x23#[error]no"),
        ("a##vso[task.setvariable]b", "a\\x23#vso[task.setvariable]b"),
        *((text, text) for text in ("::1", "fe80::1 ::ffff:1.2.3.4", "a.py::test", "# a ## b")),
    ],
)
def test_a_ci_is_given_no_command(text: str, shown: str) -> None:
    assert for_terminal(text) == shown


def test_line_feeds_stay_only_where_they_are_asked_for() -> None:
    assert for_terminal("a\nb\x1b", lines=True) == "a\nb\\x1b"
    assert for_terminal("a\nb") == "a\\nb"


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\uff1d1", "'\uff1d1"),
        ("-1.5", "-1.5"),
        ("+3e-4", "+3e-4"),
        ("", ""),
        ("a=b", "a=b"),
        ("\tx\x1b", "\\tx\\x1b"),
        ("two\nlines", "two\\nlines"),
        ("a;=1+1", "a\\u003b=1+1"),
        ('a;"@SUM(A1)', 'a\\u003b"@SUM(A1)'),
        ("a;; -1;b", "a;\\u003b -1;b"),
        ("a; b=1", "a; b=1"),
    ],
)
def test_no_cell_is_a_formula(text: str, cell: str) -> None:
    assert for_csv(text) == cell


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("a|b", "a\\|b"),
        ("<img src=x>", "&lt;img src=x&gt;"),
        ("[x](y)", "\\[x\\](y)"),
        ("`code` *b* _i_ ~s~", "\\`code\\` \\*b\\* \\_i\\_ \\~s\\~"),
        ("https://evil.example", "https:&#47;&#47;evil.example"),
        ("WWW.evil.example", "WWW&#46;evil.example"),
        ("_www.evil.example", "\\_www&#46;evil.example"),
        ("a@b.example", "a@&#8203;b.example"),
        ("a@www.example", "a@&#8203;www&#46;example"),
        ("by @kubernetes/all", "by @&#8203;kubernetes/all"),
        ("img@sha256:0a", "img@sha256:0a"),
        ("a\nb", "a\\nb"),
        ("back\\slash & more", "back\\\\slash &amp; more"),
    ],
)
def test_no_cell_is_markup(text: str, cell: str) -> None:
    assert for_markdown(text) == cell


HOSTILE = "\x1b\x7f\x9b\u202e\u2028\U000e0041 ü 日本 😀 </script><!--&"


def test_json_stays_the_same_document() -> None:
    text = for_json(json.dumps({"a": HOSTILE}, ensure_ascii=False, indent=1))
    assert json.loads(text) == {"a": HOSTILE}
    assert all(c.isprintable() or c == "\n" for c in text)
    assert "日本 😀" in text


@pytest.mark.parametrize("ensure_ascii", [True, False])
@given(text=st.text())
@example(text=HOSTILE)
@example(text='\\u001b "\\" \\\x1b\\n \n\t\r\b')
def test_a_page_shows_texts_and_obeys_none(text: str, ensure_ascii: bool) -> None:
    shown = json.loads(for_script(json.dumps({"a": text}, ensure_ascii=ensure_ascii)))["a"]
    is_plain = text.isprintable() and not HIDDEN & set(text)
    if is_plain and (text.isascii() or not ensure_ascii):
        assert shown == text
    assert all(
        c.isprintable() or c in "\n\t\u3000\u00a0" or c.isspace() for c in shown if c > "\x7f"
    )
    assert {c for c in shown if c < "\x80" and not c.isprintable()} <= {"\n", "\t"}


def test_a_script_element_cannot_be_left() -> None:
    assert not set("<>&") & set(for_script(json.dumps(HOSTILE)))


def test_json_gives_a_ci_no_command() -> None:
    document = json.dumps({"a": "##vso[task.setvariable]b ##[error] ##"})
    escaped = for_json(document)
    assert "##vso[" not in escaped
    assert "##[" not in escaped
    assert json.loads(escaped) == json.loads(document)


@pytest.mark.parametrize("word", ["shop/import", "a.b-c_d", "v1.36.3", "C:/x@y%20,z+1"])
def test_names_are_words(word: str) -> None:
    assert is_shell_word(word)


@pytest.mark.parametrize(
    "word", ["", "a b", "$(x)", "`x`", "a;b", "a\nb", "-rf", "a*", "~x", "'", "é"]
)
def test_what_a_shell_would_touch_is_no_word(word: str) -> None:
    assert not is_shell_word(word)


@pytest.mark.parametrize(
    "text",
    ["", "ns/$(id)", "ns/`id`", "ns/a b; id", "ns/it's", "ns/a\nid", "ns/\x1b[2J", "ns/a"],
)
def test_a_shell_is_handed_one_word(text: str) -> None:
    word = for_shell(text)
    assert shlex.split(word) == [for_terminal(text)]
    assert is_shell_word(word) or (word[0], word[-1]) == ("'", "'")
