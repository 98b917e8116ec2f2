"""Reports as one HTML file each: template, style, script and data put together.

Nothing of a trace becomes markup: the data stands in a JSON script block in which `<` cannot occur,
and the script only ever sets text. A policy in the page forbids every connection.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Collection, Mapping, Sequence
from importlib.resources import files
from typing import Any

from tracekit.base.collecting import collecting_rarely
from tracekit.base.escaping import for_html, for_script
from tracekit.report.documents import plain_json
from tracekit.report.html.packed import in_parts

_MARK = re.compile("@([A-Z]+)@")
_FOLDER = files("tracekit.report.html")
#: Up to so many characters the data of a page stands in it as it is.
_PLAIN_CHARS_MAX = 2_000_000
#: Of gzip: more saves a twentieth, and takes three times as long.
_LEVEL = 6
#: Of the policy of a page that a server of ours gives out.
SERVED = "connect-src 'self'; "
#: The script in its parts, in order: one function around all of them.
SCRIPTS = (
    "core.js", "asked.js", "overview.js", "rows.js", "timeline.js", "details.js", "happenings.js",
    "actions.js",
)  # fmt: skip
WHATIF_SCRIPTS = ("core.js", "whatif.js")


@collecting_rarely()
def report_page(data: Mapping[str, Any]) -> str:
    """The whole page about a trace: a file, which asks nobody."""
    if not _has_large_jobs(data):
        document = embedded_json(data)
        if len(document) <= _PLAIN_CHARS_MAX:
            return _report(data, element("data", document), "")
    core, parts = in_parts(data)
    packed = [element(f"part-{name}", embedded_json(part)) for name, part in parts.items()]
    return _report(data, element("data", embedded_json(core)), "\n".join(packed))


def _has_large_jobs(data: Mapping[str, Any]) -> bool:
    """Whether the Jobs alone are too much: then the whole need not be made to be measured."""
    characters = 0
    for job in data["jobs"]:
        characters += len(embedded_json(job))
        if characters > _PLAIN_CHARS_MAX:
            return True
    return False


def served_page(data: Mapping[str, Any]) -> str:
    """The same page where it asks the server that it comes from, and nobody else."""
    return _report(data, element("data", embedded_json(data)), "", SERVED)


def _report(data: Mapping[str, Any], held: str, parts: str, connect: str = "") -> str:
    title = f"{data['title']} · tracekit report"
    return _page("template.html", ("report.css",), SCRIPTS, title, held, parts, connect)


def whatif_page(data: Mapping[str, Any]) -> str:
    """The whole page about what other rules would have done."""
    styles = ("report.css", "whatif.css")
    title = f"{data['title']} · tracekit whatif"
    return _page("whatif.html", styles, WHATIF_SCRIPTS, title, element("data", embedded_json(data)))


def _page(
    template: str,
    styles: Sequence[str],
    scripts: Sequence[str],
    title: str,
    data: str,
    parts: str = "",
    connect: str = "",
) -> str:
    style, script = ("".join(_read(name) for name in names) for names in (styles, scripts))
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"{connect}style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    )
    marks = {
        "TITLE": for_html(title),
        "POLICY": html.escape(policy),
        "STYLE": style,
        "DATA": data,
        "PARTS": parts,
        "SCRIPT": script,
    }
    # In one pass: a mark is looked for in the template alone, never in what was put into it.
    return _MARK.sub(lambda mark: marks[mark[1]], _read(template))


def element(name: str, document: str) -> str:
    """A script element that holds a document: compressed where it is large.

    Browsers of 2023 and later take it apart by themselves; a small page stays readable.
    """
    kind, text = "application/json", document
    if len(document) > _PLAIN_CHARS_MAX or name != "data":
        packed = gzip.compress(document.encode(), compresslevel=_LEVEL, mtime=0)
        kind, text = "application/gzip", base64.b64encode(packed).decode()
    return f'<script id="{name}" type="{kind}">{text}</script>'


def embedded_json(data: Any) -> str:
    """JSON that can stand inside a script element."""
    return for_script(plain_json(data))


def shown_in_page(text: str) -> str:
    """The text as a page has it, in which what hides or obeys is written out."""
    return str(json.loads(embedded_json(text)))


def meant(shown: str, texts: Collection[str]) -> str:
    """Which of the record's texts a page shows so; the text itself where none is shown so."""
    if shown in texts or "\\" not in shown:
        return shown
    return next((text for text in texts if shown_in_page(text) == shown), shown)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
