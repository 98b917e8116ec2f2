"""The report as one HTML file: template, style, script and data put together.

Nothing of a trace becomes markup: the data stands in a JSON script block in which `<` cannot occur,
and the script only ever sets text. A policy in the page forbids every connection.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import orjson

from tracekit.foreign import for_script

_FOLDER = files("tracekit.report.html")
#: The script in its parts, in order: one function around all of them.
SCRIPTS = (
    "core.js", "overview.js", "rows.js", "timeline.js", "details.js", "hands.js",
)  # fmt: skip


def report_page(data: Mapping[str, Any]) -> str:
    """The whole page."""
    style, script = _read("report.css"), "".join(_read(name) for name in SCRIPTS)
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    )
    parts = {
        "@TITLE@": html.escape(f"{data['title']} · tracekit report"),
        "@POLICY@": html.escape(policy),
        "@STYLE@": style,
        "@DATA@": embedded_json(data),
        "@SCRIPT@": script,
    }
    page = _read("template.html")
    for mark, text in parts.items():
        before, found, after = page.partition(mark)
        assert found, mark  # noqa: S101 - the template is ours
        page = before + text + after
    return page


def embedded_json(data: Any) -> str:
    """JSON that can stand inside a script element."""
    return for_script(orjson.dumps(data, default=str).decode())


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
