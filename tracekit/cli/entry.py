"""Where the program begins, before anything of it is imported, which takes a tenth of a second.

Who presses Ctrl-C in that time wants the program gone; Python would print where in which library an
import was. Nothing is begun yet, so the process ends where it is.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # `typing` takes a quarter of the time
if TYPE_CHECKING:
    from collections.abc import Callable

#: The exit status of who was interrupted, as shells have it: 128 + SIGINT.
INTERRUPTED = 130


def main() -> None:
    """Run the command line and exit."""
    _begin("tracekit.cli.main", "main")


def kubectl_complete() -> None:
    """Print what kubectl's completion asks for, as `tracekit.cli.completion` does."""
    _begin("tracekit.cli.completion", "kubectl_complete")


def _begin(module: str, name: str) -> None:
    try:
        function = _imported(module, name)
        function()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _imported(module: str, name: str) -> Callable[[], None]:
    # What a handler raises amid an import may come out as another error, or not at all.
    import os  # noqa: PLC0415 - in here an interrupt is told
    import signal  # noqa: PLC0415
    from importlib import import_module  # noqa: PLC0415

    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if usual:
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    function: Callable[[], None] = getattr(import_module(module), name)
    if usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return function
