"""Which revisions of a store are known to be given out, and to which object: a byte for each.

Revisions lie close together, so they are kept in pages of neighbours: what is kept grows with the
span of revisions that a log covers, not with its bytes.
"""

from __future__ import annotations

_PAGE_BITS = 8
_PAGE = 1 << _PAGE_BITS
#: Hashes of objects are 1 to 254; nobody's is 0, a revision that was chosen has 255.
_OWNERS = 254
_CHOSEN = 255


class GivenOut:
    """The revisions that answers told, and those that were chosen for others."""

    def __init__(self) -> None:
        self._pages: dict[int, bytearray] = {}
        #: A revision that two objects claim.
        self.clash: int | None = None

    def claim(self, revision: int, obj: int) -> None:
        """An answer shows this object (a hash) at that revision."""
        owner = 1 + obj % _OWNERS
        page = self._page(revision)
        place = revision & (_PAGE - 1)
        known = page[place]
        if not known:
            page[place] = owner
        elif known != owner and (self.clash is None or revision < self.clash):
            self.clash = revision

    def take(self, revision: int) -> None:
        """Give the revision to a write whose own is not told."""
        self._page(revision)[revision & (_PAGE - 1)] = _CHOSEN

    def __contains__(self, revision: int) -> bool:
        page = self._pages.get(revision >> _PAGE_BITS)
        return page is not None and page[revision & (_PAGE - 1)] != 0

    def _page(self, revision: int) -> bytearray:
        page = self._pages.get(revision >> _PAGE_BITS)
        if page is None:
            page = self._pages[revision >> _PAGE_BITS] = bytearray(_PAGE)
        return page
