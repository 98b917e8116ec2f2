"""tracekit: record and replay traces of the Kubernetes batch controllers."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tracekit.api import Trace

try:
    __version__ = version("kube-tracekit")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["__version__", "open"]


def open(path: str | Path) -> Trace:  # noqa: A001 - `tracekit.open` reads as it is meant
    """Open a trace: see `tracekit.api.Trace`."""
    from tracekit.api import Trace  # noqa: PLC0415 - the command line starts without it

    return Trace(path)
