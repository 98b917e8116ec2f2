"""What a secret looks like: known shapes in any text, and words that name one.

The same patterns find what `--check` lists and what redaction takes out of texts that it otherwise
keeps, so that nothing of a shape that is known here can be left. A stand-in is only what redaction
makes: the prefix and so many hexadecimal digits; other text that begins alike is text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

PREFIX = "redacted-"
DIGITS = 24
_STAND_IN = re.compile(rf"{PREFIX}[0-9a-f]{{{DIGITS}}}")
_NOT_A_STAND_IN = rf"(?!{PREFIX}[0-9a-f]{{{DIGITS}}}\b)"
_NAMES = (
    r"pass(?:word|wd|phrase)|pwd|secret|api[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key"
    r"|client[_-]?key|token|credential|authorization|cookie"
)

#: Shapes by name; where there is a group, that is the secret, else the whole match is.
_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "private key",
        re.compile(
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
            r"(?:.*?-----END [A-Z ]*PRIVATE KEY-----|[\sA-Za-z0-9+/=\\]*)",
            re.DOTALL,
        ),
    ),
    ("AWS access key", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("JSON web token", re.compile(r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}")),
    ("GitHub token", re.compile(r"\b(?:gh[pousr]_[0-9A-Za-z]{36,}|github_pat_\w{22,})")),
    ("GitLab token", re.compile(r"\bglpat-[\w-]{20,}")),
    ("Slack token", re.compile(r"\bxox[abpors]-[0-9A-Za-z-]{10,}")),
    ("Google API key", re.compile(r"\bAIza[\w-]{35}")),
    ("secret key of an API", re.compile(r"\bsk[-_](?:live_|proj-|ant-)?[0-9A-Za-z_-]{20,}")),
    # From the beginning of the word on: from each letter in it would take its length squared.
    (
        "password in a URL",
        re.compile(r"(?<![a-zA-Z0-9+.-])[a-zA-Z0-9+.-]+://([^/\s:@]*:[^/\s@]+)@"),
    ),
    (
        "credential of a header",
        re.compile(rf"(?i)\b(?:bearer|basic)\s+{_NOT_A_STAND_IN}([\w.~+/=-]{{12,}})"),
    ),
    (
        "value named like a secret",
        re.compile(
            rf"(?i)(?:{_NAMES})s?[\"']?\s*[=:]\s*[\"']?{_NOT_A_STAND_IN}([^\s\"',}}]{{6,}})"
        ),
    ),
)
_SECRET_NAME = re.compile(rf"(?i)(?:{_NAMES})")
#: Without one of these no shape can match; most texts have none.
_HINT = re.compile(
    rf"(?i){_NAMES}|://|PRIVATE KEY|AKIA|ASIA|eyJ|gh[pousr]_|github_pat|glpat|xox|AIza|sk[-_]"
    r"|bearer|basic"
)
#: Fields of the API that name a Secret or say where a token is, and are none.
_HARMLESS = frozenset(
    {
        *("secretName", "secretRef", "secretKeyRef", "imagePullSecrets", "tokenPath"),
        *("nodePublishSecretRef", "serviceAccountToken", "automountServiceAccountToken"),
    }
)


def is_stand_in(text: str) -> bool:
    """Tell whether a text is what redaction made of another."""
    return _STAND_IN.fullmatch(text) is not None


def is_secret_name(name: str) -> bool:
    """Tell whether a variable, header or key of this name may hold a secret."""
    return name not in _HARMLESS and _SECRET_NAME.search(name) is not None


def scrubbed(text: str, stand_in: Callable[[str], str]) -> str:
    """Give a text with every known shape in it replaced by its stand-in."""
    if _HINT.search(text) is None or is_stand_in(text):
        return text
    for _, pattern in _SHAPES:
        text = pattern.sub(lambda match: _replaced(match, stand_in), text)
    return text


def _replaced(match: re.Match[str], stand_in: Callable[[str], str]) -> str:
    if match.re.groups == 0:
        return stand_in(match[0])
    start, end = match.start(1) - match.start(), match.end(1) - match.start()
    secret = match[1]
    if is_stand_in(secret):
        return match[0]
    return match[0][:start] + stand_in(secret) + match[0][end:]


def suspicions(body: Any) -> Iterator[tuple[str, str]]:
    """Yield (path, why) of everything in an object that still looks like a secret.

    Names of fields count too: `fieldsV1` and annotations have what users wrote as names.
    """
    yield from _walk(body, "")


def _walk(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        name, text = value.get("name"), value.get("value")
        named = isinstance(name, str) and isinstance(text, str) and is_secret_name(name)
        if named and text and not is_stand_in(text):
            yield f"{path}[name={name}].value", f"the variable {name} is named like a secret"
        for key, child in value.items():
            where = f"{path}.{key}" if path else str(key)
            yield from _named(str(key), child, where)
            yield from _walk(child, where)
    elif isinstance(value, list):
        for child in value:
            yield from _walk(child, f"{path}[]")
    elif isinstance(value, str):
        why = _shape_of(value)
        if why is not None:
            yield path, f"looks like a {why}"


def _named(key: str, child: Any, where: str) -> Iterator[tuple[str, str]]:
    why = _shape_of(key)
    if why is not None:
        yield where, f"its name looks like a {why}"
    elif isinstance(child, str) and child and is_secret_name(key) and not is_stand_in(child):
        yield where, "it is named like a secret"


def _shape_of(text: str) -> str | None:
    if _HINT.search(text) is None:
        return None
    for why, pattern in _SHAPES:
        for match in pattern.finditer(text):
            if not is_stand_in(match[1] if pattern.groups else match[0]):
                return why
    return None
