"""The names that were probably meant: one matcher for every name that a user types."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def closest(name: str, names: Iterable[str], *, count: int = 3) -> str:
    """The names most like this one, as words of a sentence; empty when none is close."""
    known = {candidate.lower(): candidate for candidate in names}
    found = [known[n] for n in get_close_matches(name.lower(), list(known), count, cutoff=0.55)]
    if len(found) < 2:  # noqa: PLR2004 - one or none needs no list
        return "".join(found)
    return f"{', '.join(found[:-1])} or {found[-1]}"


def hint(name: str, names: Iterable[str], otherwise: str) -> str:
    """What follows "there is no NAME" in a sentence: the names meant, else where to look."""
    found = closest(name, names)
    return f"; did you mean {found}?" if found else f": {otherwise}"
