"""`manifest.json`: what a trace must still have, so that a loss at its end shows.

Segments say by their names which rows they hold, and verify themselves (`seal.py`); what they
cannot tell is that the last of them, or the whole log, is gone. The manifest says how many rows
were flushed at least. A writer replaces it after each segment is in place, so it never promises
more than there is; a reader reads it before it lists the log. A compaction of the whole trace adds
which namespaces there are, so that who wants another one need not look at the log.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from msgspec import Struct

from tracekit.base.errors import TraceFormatError
from tracekit.trace.format.header import replace_file
from tracekit.trace.format.model import MANIFEST_NAME
from tracekit.trace.format.opening import read_inside
from tracekit.trace.format.seal import DamageError, check_document, sealed_document

_BYTES_MAX = 1 << 20
#: Of more none is named: a manifest is small.
_NAMESPACES_MAX = 4096


class Manifest(Struct, frozen=True):
    """What is known of a trace's log as a whole."""

    #: At least as many rows were flushed.
    rows: int = 0
    #: What the seals of all segments name; None before the first.
    trace: str | None = None
    #: The namespaces that rows may be of; None: nobody has looked.
    namespaces: frozenset[str] | None = None

    def lacks(self, namespace: str) -> bool:
        """Whether no row of the trace is of a namespace."""
        return self.namespaces is not None and namespace not in self.namespaces


def read_manifest(trace: Path, *, sealed: bool) -> Manifest | None:
    """The manifest; None if the trace is of a writer that made none.

    `sealed` is what the header says of itself: one that has a checksum has a manifest.
    """
    if not sealed:
        return None  # one may lie there already: an old trace that is about to be appended to
    path = trace / MANIFEST_NAME
    try:
        content = read_inside(trace, MANIFEST_NAME, bytes_max=_BYTES_MAX)
    except FileNotFoundError:
        raise TraceFormatError(
            f"{trace} has lost its {MANIFEST_NAME}, so nobody can tell whether its rows are all "
            "there: restore it from a copy of the trace"
        ) from None
    except OSError as error:
        raise _damaged(path, error) from error
    try:
        return parse_manifest(content)
    except DamageError as error:
        raise _damaged(path, error) from error


def parse_manifest(content: bytes) -> Manifest:
    """What a manifest says; `DamageError` if it cannot be believed."""
    try:
        return _parse(json.loads(content))
    except (ValueError, RecursionError) as error:
        raise DamageError(str(error)) from error


def _parse(document: Any) -> Manifest:
    if not isinstance(document, dict) or not check_document(document):
        raise DamageError("it has no checksum")
    rows, identity = document.get("rows"), document.get("trace")
    if type(rows) is not int or rows < 0 or not (identity is None or isinstance(identity, str)):
        raise DamageError("it does not say how many rows there are")
    names = document.get("namespaces")
    if names is not None and not (
        isinstance(names, list) and all(isinstance(name, str) for name in names)
    ):
        raise DamageError("it does not say which namespaces there are")
    return Manifest(rows, identity, None if names is None else frozenset(names))


def _damaged(path: Path, error: Exception) -> TraceFormatError:
    return TraceFormatError(f"{path} is damaged ({error}): restore it from a copy of the trace")


def write_manifest(trace: Path, manifest: Manifest) -> None:
    """Replace the manifest of the trace."""
    sealed: dict[str, Any] = {"rows": manifest.rows, "trace": manifest.trace}
    if manifest.namespaces is not None and len(manifest.namespaces) <= _NAMESPACES_MAX:
        sealed["namespaces"] = sorted(manifest.namespaces)
    document = sealed_document(sealed)
    # The rename need not survive a power cut: an older manifest only promises less.
    content = json.dumps(document).encode() + b"\n"
    replace_file(trace / MANIFEST_NAME, content, durable_name=False)
