"""When an ungated behavior shipped: one row of the table in `behavior_releases`."""

from __future__ import annotations

from msgspec import Struct

from tracekit.versions.version import Boundary


class Shipped(Struct, frozen=True):
    """When a behavior shipped, what it is, and where upstream has it."""

    boundary: Boundary
    about: str
    upstream: str
    #: False: a patch number comes from release notes or dates and was not compared in the source.
    patch_is_certain: bool = True


def shipped(
    onward: str | None,
    about: str,
    upstream: str,
    *,
    first_patch: dict[str, int] | None = None,
    gone: str | None = None,
    certain: bool = True,
) -> Shipped:
    """A row: the minor that has it, the branches that got it by a patch, the minor that lost it."""
    patches = tuple((first_patch or {}).items())
    return Shipped(Boundary(onward, patches, gone), about, upstream, certain)
