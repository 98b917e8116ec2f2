"""tracekit: record and replay traces of the Kubernetes batch controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tracekit.api import Trace

__all__ = ["__version__", "open"]


def open(path: str | Path) -> Trace:  # noqa: A001 - `tracekit.open` reads as it is meant
    """Open a trace: see `tracekit.api.Trace`."""
    from tracekit.api import Trace  # noqa: PLC0415 - the command line starts without it

    return Trace(path)


def __getattr__(name: str) -> str:
    """`__version__`, looked up when it is asked for: reading the metadata takes a while."""
    if name != "__version__":
        raise AttributeError(f"module 'tracekit' has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    try:
        return version("kube-tracekit")
    except PackageNotFoundError:  # a source tree that was never installed
        return "0+unknown"
