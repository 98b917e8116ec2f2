"""`manifest.json`: what a trace must still have, so that a loss at its end shows.

Segments say by their names which rows they hold, and verify themselves (`seal.py`); what they
cannot tell is that the last of them, or the whole log, is gone. The manifest says how many rows
were flushed at least. A writer replaces it after each segment is in place, so it never promises
more than there is; a reader reads it before it lists the log. Compaction changes nothing in it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracekit.errors import TraceFormatError
from tracekit.trace.format.header import replace_file
from tracekit.trace.format.model import MANIFEST_NAME
from tracekit.trace.format.opening import read_inside
from tracekit.trace.format.seal import DamageError, check_document, sealed_document

_BYTES_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is known of a trace's log as a whole."""

    #: At least as many rows were flushed.
    rows: int = 0
    #: What the seals of all segments name; None before the first.
    trace: str | None = None


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
        document = json.loads(content)
        return _parse(document)
    except (ValueError, RecursionError, DamageError) as error:
        raise _damaged(path, error) from error


def _parse(document: Any) -> Manifest:
    if not isinstance(document, dict) or not check_document(document):
        raise DamageError("it has no checksum")
    rows, identity = document.get("rows"), document.get("trace")
    if type(rows) is not int or rows < 0 or not (identity is None or isinstance(identity, str)):
        raise DamageError("it does not say how many rows there are")
    return Manifest(rows, identity)


def _damaged(path: Path, error: Exception) -> TraceFormatError:
    return TraceFormatError(f"{path} is damaged ({error}): restore it from a copy of the trace")


def write_manifest(trace: Path, manifest: Manifest) -> None:
    """Replace the manifest of the trace."""
    document = sealed_document({"rows": manifest.rows, "trace": manifest.trace})
    # The rename need not survive a power cut: an older manifest only promises less.
    content = json.dumps(document).encode() + b"\n"
    replace_file(trace / MANIFEST_NAME, content, durable_name=False)
