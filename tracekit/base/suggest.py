"""The names that were probably meant: one matcher for every name that a user types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: So like a name must another be, of 1, to be meant at all; and so much less than the best one.
_CLOSE = 0.61
_AS_CLOSE = 0.12
#: So many letters differ of a name that was mistyped: two neighbours swapped, or two slips. A
#: choice: only which names are suggested hangs on it.
_SLIP = 2


def closest(name: str, names: Iterable[str], *, count: int = 3) -> str:
    """The names most like this one, as words of a sentence; empty when none is close."""
    known = {candidate.lower(): candidate for candidate in names}
    near = _near(name, list(known), count)
    best = _likeness(name, near[0]) if near else 0.0
    found = [known[n] for n in near if _likeness(name, n) > best - _AS_CLOSE]
    if len(found) < 2:  # noqa: PLR2004 - one or none needs no list
        return "".join(found)
    return f"{', '.join(found[:-1])} or {found[-1]}"


def _near(name: str, names: Sequence[str], count: int) -> list[str]:
    from difflib import get_close_matches  # noqa: PLC0415 - only where a name was mistyped

    return get_close_matches(name.lower(), names, count, cutoff=_CLOSE)


def _likeness(name: str, other: str) -> float:
    from difflib import SequenceMatcher  # noqa: PLC0415 - as above

    return SequenceMatcher(None, other, name.lower()).ratio()


def misspelt(name: str, names: Iterable[str]) -> str:
    """The one name that this differs from by a slip of the keyboard; empty when there is none."""
    known = {candidate.lower(): candidate for candidate in names}
    for near in _near(name, list(known), 1):
        from difflib import SequenceMatcher  # noqa: PLC0415 - as in `_likeness`

        blocks = SequenceMatcher(None, near, name.lower()).get_matching_blocks()
        same = sum(block.size for block in blocks)
        if max(len(near), len(name)) - same <= _SLIP:
            return known[near]
    return ""


def hint(name: str, names: Iterable[str], otherwise: str) -> str:
    """What follows "there is no NAME" in a sentence: the names meant, else where to look."""
    found = closest(name, names)
    return f"; did you mean {found}?" if found else f": {otherwise}"
