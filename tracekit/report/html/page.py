"""Reports as one HTML file each: template, style, script and data put together.

Nothing of a trace becomes markup: the data stands in a JSON script block in which `<` cannot occur,
and the script only ever sets text. A policy in the page forbids every connection.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from tracekit.base.escaping import for_html, for_script
from tracekit.report.documents import plain_json

_MARK = re.compile("@([A-Z]+)@")
_FOLDER = files("tracekit.report.html")
#: Up to so many characters the data of a page stands in it as it is.
_PLAIN_CHARS_MAX = 2_000_000
#: The script in its parts, in order: one function around all of them.
SCRIPTS = (
    "core.js", "overview.js", "rows.js", "timeline.js", "details.js", "hands.js",
)  # fmt: skip
WHATIF_SCRIPTS = ("core.js", "whatif.js")


def report_page(data: Mapping[str, Any]) -> str:
    """The whole page about a trace."""
    return _page("template.html", ("report.css",), SCRIPTS, data, "tracekit report")


def whatif_page(data: Mapping[str, Any]) -> str:
    """The whole page about what other rules would have done."""
    styles = ("report.css", "whatif.css")
    return _page("whatif.html", styles, WHATIF_SCRIPTS, data, "tracekit whatif")


def _page(
    template: str,
    styles: Sequence[str],
    scripts: Sequence[str],
    data: Mapping[str, Any],
    verb: str,
) -> str:
    style, script = ("".join(_read(name) for name in names) for names in (styles, scripts))
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    )
    kind, text = _held(embedded_json(data))
    parts = {
        "TITLE": for_html(f"{data['title']} · {verb}"),
        "POLICY": html.escape(policy),
        "STYLE": style,
        "KIND": kind,
        "DATA": text,
        "SCRIPT": script,
    }
    # In one pass: a mark is looked for in the template alone, never in what was put into it.
    return _MARK.sub(lambda mark: parts[mark[1]], _read(template))


def _held(document: str) -> tuple[str, str]:
    """The type and the text of the data's script element: compressed where it is large.

    Browsers of 2023 and later take it apart by themselves; a small page stays readable.
    """
    if len(document) <= _PLAIN_CHARS_MAX:
        return "application/json", document
    packed = gzip.compress(document.encode(), mtime=0)
    return "application/gzip", base64.b64encode(packed).decode()


def embedded_json(data: Any) -> str:
    """JSON that can stand inside a script element."""
    return for_script(plain_json(data))


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
