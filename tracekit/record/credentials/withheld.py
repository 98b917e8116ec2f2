"""What may never be said: the credentials of a configuration, and texts made free of them.

A credential reaches a message by many ways: an HTTP library that quotes the header it refuses, a
server or proxy that sends back what it got, a parser that quotes its input. So no way is trusted:
every text that comes from elsewhere is cleaned of all credentials that were ever loaded before it
is shown, counted or written into a trace.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import unquote

import orjson

STAND_IN = "[credential]"
#: Tokens are renewed every hour or so, and each is good for not much longer.
_SENT_MAX: Final = 32
#: A token that can be guessed may also be a word of an object's.
_SENT_CHARS_MIN: Final = 16
#: Shorter ones would blank out ordinary words and tell nobody anything.
_CHARS_MIN = 6
#: `\\u0041`, `%252541`: what one character takes where it is escaped twice.
_ESCAPED_CHARS: Final = 8
_NAMED: Final = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
#: Escapes with the character's number in hexadecimal, in decimal, by name; and mere backslashes.
_ESCAPE = re.compile(
    r"(?:\\+(?:u00|x)|%(?:25)*|&#x0*)(?P<hexadecimal>[0-9a-f]{2})(?:(?<=[0-9a-f]);)?"
    r"|&#0*(?P<decimal>[0-9]{2,3});|&(?P<name>amp|lt|gt|quot|apos);|\\+",
    re.IGNORECASE,
)
_SECRET_KEY = re.compile(r"(?i)token|secret|password|key|credential")
#: What a header can hold: `Bearer …` or `Basic …` in visible ASCII.
_HEADER_VALUE = re.compile(r"[\x21-\x7e]+(?: [\x21-\x7e]+)*")
#: A choice: tokens have a few thousand, and an API server takes 1 MiB of headers
#: (net/http DefaultMaxHeaderBytes). Each is looked for in every text, in all its spellings.
HEADER_CHARS_MAX: Final = 1 << 16
_SCHEME = re.compile(r"[^/@]*:?//")
_BEGINS_QUERY = re.compile(r"[?#]")
_ENDS_AUTHORITY = re.compile(r"[/?#]")
_HOST_PORT = re.compile(r"(?:\[[^\]]*\]|[^:]*)(?::[0-9]*)?")


class Credentials:
    """All credentials that a connection has used so far; only ever grows."""

    def __init__(self) -> None:
        self._known: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        #: The latest that were sent, as they stand in JSON.
        self._sent: tuple[bytes, ...] = ()

    def learn(self, values: Iterable[str]) -> None:
        """Keep these out of every text from now on."""
        forms = (_flat(form)[0] for value in values for form in _forms(value))
        found = {form for form in forms if len(form) >= _CHARS_MIN}
        if found <= self._known:
            return
        self._known |= found
        # The longest first: one may hold another.
        ordered = sorted(self._known, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(re.escape, ordered)))

    def learn_sent(self, token: str) -> None:
        """Keep what is sent in a header out of every text, and out of objects."""
        self.learn([token])
        literal = orjson.dumps(token.encode("utf-8", "replace").decode())[1:-1]
        if len(literal) >= _SENT_CHARS_MIN and literal not in self._sent:
            self._sent = (*self._sent, literal)[-_SENT_MAX:]

    def out_of_object(self, raw: bytes) -> bytes:
        """Give an object's JSON text without the tokens that stand in it as they are.

        An argument or a variable of the recorder's own pod may be one. Objects come by the
        thousand, and are evidence: they are not searched for other spellings, nor for words of a
        kubeconfig that may be the names of something.
        """
        for literal in self._sent:
            if literal in raw:
                raw = raw.replace(literal, STAND_IN.encode())
        return raw

    def clean(self, text: str) -> str:
        """Give the text with a stand-in for each credential in it, however it is spelt."""
        kept, end = self._without(text, len(text))
        return text if not kept else "".join((*kept, text[end:]))

    def clean_start(self, text: str, chars: int) -> str:
        """Give so many characters of the text's start, as `clean` does.

        A credential that the cut would divide counts whole: of a half the rest would not be known.
        """
        # Escapes spell a character in up to so many; who nests them deeper hides it on purpose.
        reach = chars + _ESCAPED_CHARS * max(map(len, self._known), default=0)
        kept, end = self._without(text[:reach], chars)
        return "".join((*kept, text[end : max(end, chars)]))

    def _without(self, text: str, before: int) -> tuple[list[str], int]:
        """Give the text to the end of its last credential that begins before a place, and that."""
        kept: list[str] = []
        end = 0
        if self._pattern is not None:
            flat, places = _flat(text)
            for found in self._pattern.finditer(flat):
                if places[found.start()] >= before:
                    break
                kept += text[end : places[found.start()]], STAND_IN
                end = places[found.end()]
        return kept, end

    def cleaned_bytes(self, text: bytes) -> bytes:
        """Do the same for UTF-8 text; what is not UTF-8 is left as it is otherwise."""
        if self._pattern is None:
            return text
        return self.clean(text.decode("utf-8", "surrogateescape")).encode(
            "utf-8", "surrogateescape"
        )


def _flat(text: str) -> tuple[str, list[int]]:
    """The text in lower case and without escapes, and where in it each character began.

    Escapes of URLs, JSON, Python, HTML, one within another too; backslashes are left out. The last
    place is the end of the text.
    """
    flat: list[str] = []
    places: list[int] = []
    end = 0
    for escape in _ESCAPE.finditer(text):
        flat += map(_lower, text[end : escape.start()])
        places += range(end, escape.start())
        end = escape.end()
        hexadecimal, decimal, name = escape.groups()
        if hexadecimal or decimal or name:
            number = int(hexadecimal, 16) if hexadecimal else int(decimal or ord(_NAMED[name]))
            flat.append(_lower(chr(number)))
            places.append(escape.start())
    flat += map(_lower, text[end:])
    places += range(end, len(text) + 1)
    return "".join(flat), places


def _lower(character: str) -> str:
    lower = character.lower()
    return lower if len(lower) == 1 else character


def is_usable_header(value: str) -> bool:
    """Tell whether a value can be sent as an Authorization header."""
    return len(value) <= HEADER_CHARS_MAX and _HEADER_VALUE.fullmatch(value) is not None


def _forms(value: str) -> Iterator[str]:
    """Yield a credential, and what encodings make of it; `_flat` sees through escapes."""
    for part in (value.strip(), *value.split()):
        yield part
        yield from _encoded(part.encode("utf-8", "surrogatepass"))
        if part.startswith(("{", "-----")):
            continue
        try:
            plain = base64.b64decode(part, validate=True).decode()
        except (binascii.Error, ValueError):
            continue
        # Basic authentication: the user's name and password as they are.
        yield plain
        yield plain.partition(":")[2]


def _encoded(data: bytes) -> Iterator[str]:
    """Yield the bytes in hexadecimal, and in base64 wherever in a longer text they stand."""
    if len(data) < _CHARS_MIN:
        return
    yield data.decode("latin-1")  # as escapes of URLs spell each byte
    yield data.hex()
    for before in range(3):
        text = base64.b64encode(bytes(before) + data).decode()
        text = text[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
        yield text
        yield text.replace("+", "-").replace("/", "_")


def url_credentials(url: Any) -> Iterator[str]:
    """Yield the password of a URL, and it with the user's name."""
    if not isinstance(url, str) or "@" not in url:
        return
    userinfo = _split_url(url)[1]
    name, colon, password = userinfo.partition(":")
    yield from (password, unquote(password), userinfo if colon else name)
    # Of a password with one of these as it is, parsers quote what is before it as the port.
    yield from _ENDS_AUTHORITY.split(password)


def without_userinfo(url: str) -> str:
    """Give a URL without the user and password in it."""
    scheme, _, rest = _split_url(url)
    return scheme + rest


def without_query(url: str) -> str:
    """Give a URL without what follows its path."""
    rest = _split_url(url)[2]
    return url[: len(url) - len(rest)] + _BEGINS_QUERY.split(rest, maxsplit=1)[0]


def _split_url(url: str) -> tuple[str, str, str]:
    """A URL's scheme, the user and password in it, and what comes after them.

    Passwords are written with a `/`, `?` or `#` as they are: where what comes before the first of
    these can be no host and port, all up to the last `@` is taken for one.
    """
    found = _SCHEME.match(url)
    scheme = found[0] if found else ""
    rest = url[len(scheme) :]
    authority = _ENDS_AUTHORITY.split(rest, maxsplit=1)[0]
    if scheme.endswith("//") and ("@" in authority or _HOST_PORT.fullmatch(authority)):
        userinfo, at, host = authority.rpartition("@")
        return scheme, userinfo, host + rest[len(authority) :] if at else rest
    userinfo, _, rest = rest.rpartition("@")
    return scheme, userinfo, rest


def kubeconfig_credentials(document: Any) -> Iterator[str]:
    """Yield every credential that a kubeconfig holds, of whatever user or cluster."""
    for entry in _entries(document, "clusters"):
        cluster = entry.get("cluster")
        if isinstance(cluster, dict):
            for name in ("server", "proxy-url"):
                yield from url_credentials(_text(cluster.get(name)))
    for entry in _entries(document, "users"):
        user = entry.get("user")
        if isinstance(user, dict):
            yield from _user_credentials(user)


def _user_credentials(user: dict[str, Any]) -> Iterator[str]:
    for name in ("token", "password", "client-key-data"):
        yield _text(user.get(name))
    provider = user.get("auth-provider")
    config = provider.get("config") if isinstance(provider, dict) else None
    if isinstance(config, dict):
        for name, value in config.items():
            if name in {"cmd-args", "cmd-path"}:
                yield from map(_argument, _text(value).split())
            elif _SECRET_KEY.search(str(name)):
                yield _text(value)
    plugin = user.get("exec")
    if not isinstance(plugin, dict):
        return
    for variable in plugin.get("env") or ():
        if isinstance(variable, dict):
            yield _text(variable.get("value"))
    for argument in plugin.get("args") or ():
        yield _argument(_text(argument))


def _argument(text: str) -> str:
    """Give the value of `--name=value`; nothing of a bare option."""
    if text.startswith("-"):
        return text.partition("=")[2]
    return text


def _entries(document: Any, name: str) -> Iterator[dict[str, Any]]:
    listed = document.get(name) if isinstance(document, dict) else None
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, dict):
            yield entry


def _text(value: Any) -> str:
    return "" if value is None else str(value)
