"""tracekit: record and replay traces of the Kubernetes batch controllers.

>>> import tracekit
>>> trace = tracekit.open("demo/real")
>>> trace.replay()
<Replay by the rules of v1.36.3: 1,239 actions explained, no divergence>
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as type checkers read it: the command line starts without `typing`
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any

    from tracekit.api import Diagnosis, Finding, Judgement, Narrative, Replay, Trace
    from tracekit.base.errors import (
        ClusterError,
        TraceFormatError,
        TracekitError,
        UnsupportedVersionError,
        UsageError,
    )

    __version__: str

__all__ = [
    "ClusterError",
    "Diagnosis",
    "Finding",
    "Judgement",
    "Narrative",
    "Replay",
    "Trace",
    "TraceFormatError",
    "TracekitError",
    "UnsupportedVersionError",
    "UsageError",
    "__version__",
    "open",
]


def open(  # noqa: A001 - `tracekit.open` reads as it is meant
    path: str | Path,
    *,
    controller_flags: str | Sequence[str] | None = None,
    clock_offset: float | None = None,
) -> Trace:
    """Open a trace: see `tracekit.api.Trace`."""
    from tracekit.api import Trace  # noqa: PLC0415 - the command line starts without it

    return Trace(path, controller_flags=controller_flags, clock_offset=clock_offset)


def __getattr__(name: str) -> Any:
    """What `__all__` names, looked up when it is asked for: the command line starts without it."""
    if name == "__version__":
        return _version()
    if name not in __all__:
        raise AttributeError(f"module 'tracekit' has no attribute {name!r}")
    module = "tracekit.base.errors" if name.endswith("Error") else "tracekit.api"
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - takes a while

    try:
        return version("kube-tracekit")
    except PackageNotFoundError:  # a source tree that was never installed
        return "0+unknown"
