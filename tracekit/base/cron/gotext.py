"""Go's text rules that show in cron errors and in event messages.

White space (`strings.Fields`), quoting (`strconv.Quote`, the `%q` verb), decimal integers
(`strconv.Atoi`) and durations (`time.ParseDuration`). Each differs from Python's rule of the same
name in some corner: `str.split` also splits at the ASCII separators 0x1c-0x1f, `int` accepts
underscores and foreign digits, `repr` prefers single quotes.
"""

from __future__ import annotations

import re

#: unicode.IsSpace: Latin-1 blanks plus the Unicode White_Space property.
GO_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SPACE_RUN = re.compile(f"[{GO_SPACE}]+")
_DECIMAL = re.compile(r"([+-]?)([0-9]+)")
_INT64_MAX = 2**63 - 1
_ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}
_ASCII_END = 0x80
_BMP_END = 0x10000
_UNIT_NS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,
    "\u03bcs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_NUMBER = re.compile(r"([0-9]*)(\.([0-9]*))?")
_UNIT = re.compile(r"[^.0-9]+")


class GoSyntaxError(ValueError):
    """A text that Go's parser refuses; the message is Go's own."""


def fields(text: str) -> list[str]:
    """Split around runs of white space as `strings.Fields` does."""
    return [part for part in _SPACE_RUN.split(text) if part]


def trim_space(text: str) -> str:
    """Cut white space off both ends as `strings.TrimSpace` does."""
    start = _SPACE_RUN.match(text)
    text = text[start.end() :] if start else text
    # A regex anchored at the end would be quadratic on long runs of blanks in the middle.
    end = len(text)
    while end and _SPACE_RUN.fullmatch(text[end - 1]):
        end -= 1
    return text[:end]


def quote(text: str) -> str:
    """Quote as `strconv.Quote` and the verb `%q` do."""
    out = ['"']
    for char in text:
        code = ord(char)
        if char in _ESCAPES:
            out.append(_ESCAPES[char])
        elif char.isprintable():
            out.append(char)
        elif code < _ASCII_END:
            out.append(f"\\x{code:02x}")
        elif code < _BMP_END:
            out.append(f"\\u{code:04x}")
        else:
            out.append(f"\\U{code:08x}")
    out.append('"')
    return "".join(out)


def atoi(text: str) -> int:
    """Read a decimal integer as `strconv.Atoi` does on a 64-bit machine.

    Raises:
        GoSyntaxError: With Go's text, when it is no integer or does not fit in 64 bits.
    """
    match = _DECIMAL.fullmatch(text)
    if match is None:
        raise GoSyntaxError(f"strconv.Atoi: parsing {quote(text)}: invalid syntax")
    digits = match.group(2).lstrip("0") or "0"
    # A number of thousands of digits is refused by its length: Python's int() would raise.
    value = int(digits) if len(digits) <= len(str(_INT64_MAX)) else _INT64_MAX + 2
    negative = match.group(1) == "-"
    if value > _INT64_MAX + negative:
        raise GoSyntaxError(f"strconv.Atoi: parsing {quote(text)}: value out of range")
    return -value if negative else value


def _quote_bytes(text: str) -> str:
    """Quote as the `time` package does: bytes outside ASCII and control bytes in hexadecimal."""
    out = ['"']
    for char in text:
        if char in '"\\':
            out.append("\\" + char)
        elif " " <= char <= "\x7f":
            out.append(char)
        else:
            out.extend(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))
    out.append('"')
    return "".join(out)


def parse_duration_ns(text: str) -> int:
    """Read a duration such as `1h30m` or `-1.5s` as `time.ParseDuration` does.

    Raises:
        GoSyntaxError: With Go's text.
    """
    invalid = GoSyntaxError(f"time: invalid duration {_quote_bytes(text)}")
    rest = text
    negative = rest[:1] == "-"
    if rest[:1] in {"-", "+"}:
        rest = rest[1:]
    if rest == "0":
        return 0
    if not rest:
        raise invalid
    total_ns = 0
    while rest:
        part_ns, rest = _first_part_ns(rest, text, invalid)
        total_ns += part_ns
        if total_ns > _INT64_MAX + 1:
            raise invalid
    if total_ns > _INT64_MAX and not negative:
        raise invalid
    return -total_ns if negative else total_ns


def _first_part_ns(rest: str, text: str, invalid: GoSyntaxError) -> tuple[int, str]:
    """Read one number with its unit off the front; also what follows."""
    number = _NUMBER.match(rest)
    whole, fraction = (number.group(1), number.group(3) or "") if number else ("", "")
    if number is None or not (whole or fraction):
        raise invalid
    whole = whole.lstrip("0")
    if len(whole) > len(str(_INT64_MAX)) or int(whole or "0") > _INT64_MAX + 1:
        raise invalid
    unit = _UNIT.match(rest, number.end())
    if unit is None:
        raise GoSyntaxError(f"time: missing unit in duration {_quote_bytes(text)}")
    scale_ns = _UNIT_NS.get(unit.group())
    if scale_ns is None:
        raise GoSyntaxError(
            f"time: unknown unit {_quote_bytes(unit.group())} in duration {_quote_bytes(text)}"
        )
    part_ns = int(whole or "0") * scale_ns + _fraction_ns(fraction, scale_ns)
    return part_ns, rest[unit.end() :]


def _fraction_ns(fraction: str, scale_ns: int) -> int:
    """Cut `0.fraction * scale` to whole nanoseconds; digits that overflow 63 bits are not read."""
    value, divisor = 0, 1
    for digit in fraction:
        longer = value * 10 + int(digit)
        if value > _INT64_MAX // 10 or longer > _INT64_MAX + 1:
            break
        value, divisor = longer, divisor * 10
    return int(value * (scale_ns / divisor))
