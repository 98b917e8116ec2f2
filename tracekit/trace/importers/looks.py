"""Lists of one kind that add up to one look: bundles and people ask namespace by namespace.

A list is part of the look that is open unless it looks again where that has looked already, at
another revision: then the open one ends, and another begins. Lists of one revision are of one
moment: of what some have and others do not nothing has come or gone (pages of a long list, lists
by label, copies). So are lists without a common object, of which each has one that was there when
the other was printed: neither was asked for all. What a list looked at is its scope: some
namespaces, all, or nobody knows; where nobody knows, nothing is concluded from what is not in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

import orjson
import zstandard
from msgspec import Struct

from tracekit.base.coverage import Scope
from tracekit.base.json_text import json_text
from tracekit.base.kube.timestamps import NS_PER_S, parse_rfc3339
from tracekit.base.numbers import whole_number
from tracekit.trace.format.model import CLUSTER_WIDE
from tracekit.trace.importers.frames import listed

Raw = dict[str, Any]

#: Where bundles keep the lists of one namespace: must-gather and `oc adm inspect`,
#: support-bundle-kit, troubleshoot, sos, Sonobuoy.
_LAYOUTS = (
    re.compile(r"(?:^|/)namespaces/([a-z0-9-]+)/"),
    re.compile(r"(?:^|/)yamls/namespaced/([a-z0-9-]+)/"),
    re.compile(r"(?:^|/)sos_commands/kubernetes/cluster-info/([a-z0-9-]+)/"),
    re.compile(r"(?:^|/)resources/ns/([a-z0-9-]+)/"),
    re.compile(r"(?:^|/)cluster-resources/[a-z-]+/([a-z0-9-]+)\.(?:json|ya?ml)$"),
)
_SELF_LINK = re.compile(r"/namespaces/([a-z0-9-]+)/[a-z]+$")


class Items(Struct):
    """The items of a list, packed: many lists wait for the end, and text packs to a tenth."""

    count: int
    packed: bytes

    @classmethod
    def of(cls, items: Iterable[Raw]) -> Items:
        """The items, of each its text."""
        texts = [json_text(item) for item in items]  # none has a line break
        return cls(len(texts), zstandard.compress(b"\n".join(texts), level=1))

    def texts(self) -> list[bytes]:
        """The text of each."""
        return zstandard.decompress(self.packed).split(b"\n") if self.count else []


class Look(Struct):
    """A list as it came."""

    items: Items
    #: Namespaces; None for all of them, or for whatever was asked for.
    scope: frozenset[str] | None
    revision: str | None
    at_ns: int | None
    #: The folder that it lay in, which may name a namespace.
    folder: str
    #: Uids of its objects, and when the oldest was made, where nothing but them tells its scope.
    uids: frozenset[str] = frozenset()
    born_ns: int | None = None


def look_of(
    stream: str,
    items: list[Raw],
    document: Raw,
    name: str,
    at_ns: int | None,
    asked: Scope | None = None,
) -> Look:
    """A list that was in a file of that name; `asked`: what it asked for, if it does not say it."""
    meta = document.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    revision = meta.get("resourceVersion")
    folder = name.rpartition("/")[0].rpartition("/")[2]
    scope = _scope(stream, items, str(meta.get("selfLink") or ""), name, asked)
    known = revision if isinstance(revision, str) and revision else None
    look = Look(Items.of(items), scope, known, at_ns, folder)
    if _scope(stream, [], str(meta.get("selfLink") or ""), name, asked) == frozenset():
        metas = [found for item in items if isinstance(found := item.get("metadata"), dict)]
        born = [parse_rfc3339(str(found.get("creationTimestamp"))) for found in metas]
        look.uids = frozenset(str(found.get("uid") or "") for found in metas)
        look.born_ns = min((at for at in born if at is not None), default=None)
    return look


def _scope(
    stream: str, items: list[Raw], link: str, name: str, asked: Scope | None
) -> frozenset[str] | None:
    """What a list looked at, as it, its items or its place tell; nowhere if nothing does."""
    if stream in CLUSTER_WIDE:
        return None
    for pattern, text in ((_SELF_LINK, link), *((layout, name) for layout in _LAYOUTS)):
        found = pattern.search(text)
        if found is not None:
            return frozenset({found.group(1)})
    if asked is not None:
        return asked.namespaces
    if items and all(map(_is_of_a_kubelet, items)):
        return frozenset()  # which lists its own node's pods only
    spaces = {
        str(i["metadata"].get("namespace")) for i in items if isinstance(i.get("metadata"), dict)
    }
    return None if len(spaces) > 1 else frozenset(spaces)


def _is_of_a_kubelet(item: Raw) -> bool:
    """Whether a pod is as a kubelet has it (its /pods), with the time at which it saw it."""
    meta = item.get("metadata")
    notes = meta.get("annotations") if isinstance(meta, dict) else None
    return isinstance(notes, dict) and "kubernetes.io/config.seen" in notes


class Looks:
    """The looks that are open, by stream."""

    def __init__(self) -> None:
        self._open: dict[str, list[Look]] = {}
        self._spaces: set[str] = set()
        #: Streams of which lists of one moment look at one place.
        self._doubled: set[str] = set()
        #: So many objects were in several lists of one moment.
        self.repeated = 0

    def add(self, stream: str, look: Look) -> Iterator[bytes]:
        """Take a list; the lines of the look before it, if that has looked there already."""
        if any(_looks_again(look, other) for other in self._open.get(stream, ())):
            yield from self.end(stream)
        if any(_overlap(look, other) for other in self._open.get(stream, ())):
            self._doubled.add(stream)
        self._spaces.update(look.scope or ())
        self._open.setdefault(stream, []).append(look)

    def end(self, stream: str) -> Iterator[bytes]:
        """The lines of the look that is open."""
        looks = self._open.pop(stream, None)
        if not looks:
            return
        revisions = [n for k in looks if (n := whole_number(k.revision)) is not None]
        times = [k.at_ns for k in looks if k.at_ns is not None]
        scope = self._scope_of(looks)
        looks.reverse()  # each goes as its items do
        items: Iterable[bytes] = (
            item for _ in range(len(looks)) for item in looks.pop().items.texts()
        )
        if stream in self._doubled:
            self._doubled.remove(stream)
            items = self._once(items)
        yield from listed(
            stream,
            map(orjson.Fragment, items),
            str(min(revisions)) if revisions else None,
            max(times, default=None),
            scope,
        )

    def _once(self, items: Iterable[bytes]) -> Iterator[bytes]:
        seen: set[bytes] = set()
        for item in items:
            text = blake2b(item, digest_size=16).digest()
            if text in seen:
                self.repeated += 1
            else:
                seen.add(text)
                yield item

    def end_all(self) -> Iterator[bytes]:
        """The lines of all looks that are open."""
        for stream in list(self._open):
            yield from self.end(stream)

    def _scope_of(self, looks: Iterable[Look]) -> list[str] | None:
        spaces: set[str] = set()
        for look in looks:
            if look.scope is None:
                return None
            spaces |= look.scope
            if not look.scope and look.folder in self._spaces:
                spaces.add(look.folder)  # the other lists in it are of the namespace of its name
        return sorted(spaces)


def _looks_again(one: Look, other: Look) -> bool:
    is_one_moment = one.revision is not None and one.revision == other.revision
    return not is_one_moment and _overlap(one, other) and not _are_parts(one, other)


def _are_parts(one: Look, other: Look) -> bool:
    """Whether two lists show that they asked for different objects, as by a label.

    Whichever was printed first, an object of the other had been made by then, and it left that out.
    """
    if one.born_ns is None or other.born_ns is None or not one.uids.isdisjoint(other.uids):
        return False
    if one.at_ns is None or other.at_ns is None:
        return False
    return (
        one.born_ns + NS_PER_S <= other.at_ns  # creationTimestamp is a whole second, cut off
        and other.born_ns + NS_PER_S <= one.at_ns
    )


def _overlap(one: Look, other: Look) -> bool:
    if one.scope is None or other.scope is None:
        return True
    return not one.scope.isdisjoint(other.scope)
