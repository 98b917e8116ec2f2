"""Foreign text made safe for what it is printed to.

Names, messages and everything else that a trace, a server or a query brings may be made by somebody
hostile: an escape sequence that rewrites the terminal, a cell that a spreadsheet runs, markup. All
output passes through here, and each function says what its target would obey.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from typing import Final

#: What some spreadsheet takes for the beginning of a formula.
_FORMULA = re.compile("[=+\\-@\n\uff1d\uff0b\uff0d\uff20]")
#: Where a comma is the decimal sign a semicolon ends a cell, and the next may be quoted.
_FORMULA_NEXT = re.compile(';(?=["\\s]*[=+\\-@\uff1d\uff0b\uff0d\uff20])')
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
#: The last two are an address and a mention, of which GitHub makes links, and tells whom it names.
_MARKUP = re.compile(
    r"[\\`*_\[\]<>|~&$]|(?<=:)//|(?<=www)\.|@(?=[\w-]*\.)|(?<!\w)@(?=\w)", re.IGNORECASE
)
#: Addresses are looked for in text that was decoded: only a character between helps, of no width.
_AS_ENTITY: Final = {
    "<": "&lt;", ">": "&gt;", "&": "&amp;", "//": "&#47;&#47;", ".": "&#46;", "@": "@&#8203;",
}  # fmt: skip
#: A word that every shell takes for itself, as the names of Kubernetes are.
_SHELL_WORD = re.compile(r"[A-Za-z0-9_.:/@%+,-]+")
#: Every escape of a JSON document, and those that stand for text.
_CONTROL = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)")
_KEPT_ESCAPES: Final = {r"\\", r"\"", r"\/", r"\n", r"\t"}
#: There is one wherever a document has another than these; a page of megabytes seldom has.
_OTHER_ESCAPE = re.compile(r"\\[^\\\"/nt]")
_NOT_ASCII = re.compile(r"[^\x20-\x7e\n]")
#: What shows nothing although its category may be that of a letter or a mark:
#: Default_Ignorable_Code_Point in Unicode's DerivedCoreProperties.txt (17.0), and Braille's blank.
_BLANK = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)

#: What a CI takes for a command in what a step prints: GitHub's `::error::`, at the beginning of a
#: line, and so of any word that a line may begin with; the older `##[error]` and Azure's anywhere.
_CI_ANYWHERE = re.compile(r"#(?=#(?:\[|vso\[))")
_CI_COMMAND = re.compile(rf"(?<!\S):(?=:[A-Za-z-]+(?: [^\n]*?)?::)|{_CI_ANYWHERE.pattern}")


def for_terminal(text: str, *, lines: bool = False) -> str:
    """The text with all that a terminal would obey, or that hides or reorders text, written out.

    So is what would be a command to the CI whose log it comes to.

    Args:
        text: Text from anywhere.
        lines: Whether line feeds may stay; elsewhere they would forge lines of their own.
    """
    if "::" in text or "##" in text:
        text = _CI_COMMAND.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
    if text.isprintable() and (text.isascii() or not _BLANK.search(text)):
        return text
    return "".join(c if _is_plain(c) or (lines and c == "\n") else _written_out(c) for c in text)


def _is_plain(character: str) -> bool:
    """Whether it only shows itself; spaces of any width do."""
    shows = character.isprintable() or unicodedata.category(character) == "Zs"
    return shows and not _BLANK.match(character)


def _written_out(character: str) -> str:
    return character.encode("unicode_escape").decode()


def for_csv(text: str) -> str:
    """The text as a cell that no spreadsheet runs: an apostrophe before what looks like a formula.

    Numbers stay as they are; what a terminal would obey is written out, line feeds too: a cell
    makes no line of its own. So is a semicolon before what looks like one, in the way that JSON in
    a cell stays the same document.
    """
    text = _FORMULA_NEXT.sub(r"\\u003b", for_terminal(text))
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text


def for_markdown(text: str) -> str:
    """The text as a cell of a table: nothing in it is markup, a link, a mention or HTML."""
    text = _MARKUP.sub(lambda match: _AS_ENTITY.get(match[0], f"\\{match[0]}"), text)
    return for_terminal(text)


def for_html(text: str) -> str:
    """As for a terminal, and neither markup nor the end of an attribute."""
    from html import escape  # noqa: PLC0415 - no terminal needs it

    return escape(for_terminal(text, lines=True))


def for_json(document: str) -> str:
    """A JSON document with what a terminal or CI would obey as escapes; it stays the same."""
    if "##" in document:
        document = _CI_ANYWHERE.sub(lambda match: _json_escape(match[0]), document)
    return _NOT_ASCII.sub(
        lambda match: match[0] if _is_plain(match[0]) else _json_escape(match[0]), document
    )


def for_script(document: str) -> str:
    """A JSON document that can stand inside the script element of a page, which shows its texts.

    What a browser would obey in a text, or that hides or reorders it, is written out in the text
    itself, as a terminal shows it: the page need not know what is foreign.
    """
    if _OTHER_ESCAPE.search(document):
        document = _CONTROL.sub(
            lambda match: match[0] if match[0] in _KEPT_ESCAPES else f"\\{match[0]}", document
        )
    document = _NOT_ASCII.sub(
        lambda match: match[0] if _is_plain(match[0]) else f"\\{_written_out(match[0])}", document
    )
    for character in "<>&":
        document = document.replace(character, _json_escape(character))
    return document


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def is_shell_word(text: str) -> bool:
    """Whether a shell takes the text as one word, of which it expands and runs nothing."""
    return _SHELL_WORD.fullmatch(text) is not None and not text.startswith("-")


def for_shell(text: str) -> str:
    """The text as one word of a command that somebody may paste; quoted where it has to be."""
    return shlex.quote(for_terminal(text))
