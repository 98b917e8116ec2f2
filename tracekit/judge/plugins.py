"""Controllers of other packages, found by the entry point group `tracekit.controllers`.

An entry point names a `tracekit.check.diff.registry.Controller`. Who installs a package lets its
code judge; a trace brings none.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from tracekit.base.errors import UsageError
from tracekit.check.verdict import ACTIONS

GROUP = "tracekit.controllers"


@cache
def load_plugins() -> tuple[str, ...]:
    """Register the controllers of all installed packages; the top-level packages they come from.

    Raises:
        UsageError: An entry point cannot be loaded, or is no controller.
    """
    entries = entry_points(group=GROUP)
    if not entries:
        return ()
    from tracekit.check.diff.registry import Controller, register  # noqa: PLC0415 - the engine is slow to import

    packages = []
    for entry in entries:
        try:
            controller = entry.load()
        except Exception as error:
            raise UsageError(
                f"the controller {entry.name!r} of {entry.value} cannot be loaded "
                f"({type(error).__name__}: {error}): mend or uninstall its package"
            ) from error
        if not isinstance(controller, Controller) or controller.name in ACTIONS:
            raise UsageError(
                f"{entry.value} is no tracekit.check.diff.registry.Controller, or of a name that "
                "is taken: mend or uninstall its package"
            )
        register(controller)
        packages.append(entry.module.partition(".")[0])
    return tuple(sorted(set(packages)))
