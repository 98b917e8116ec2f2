"""Whether a trace has a namespace at all, by its manifest: no row of it is looked at.

A manifest that says nothing of namespaces, and one that cannot be believed, rule nothing out: what
is wrong with the trace is told by whoever opens it.
"""

from __future__ import annotations

from pathlib import Path

from tracekit.base.errors import TracekitError
from tracekit.trace.format.header import read_header
from tracekit.trace.format.manifest import Manifest, parse_manifest, read_manifest
from tracekit.trace.format.model import MANIFEST_NAME
from tracekit.trace.format.seal import DamageError
from tracekit.trace.stores.origin import count_fetched
from tracekit.trace.stores.place import is_url
from tracekit.trace.stores.store import complaints, open_store


def lacks_namespace(word: str, namespace: str) -> bool:
    """Whether the trace that a directory or a URL names says that it has no such namespace."""
    try:
        manifest = _of_url(word) if is_url(word) else _of_directory(Path(word))
    except (TracekitError, DamageError, OSError):
        return False
    return manifest is not None and manifest.lacks(namespace)


def _of_directory(trace: Path) -> Manifest | None:
    return read_manifest(trace, sealed=read_header(trace).sealed_from is not None)


def _of_url(url: str) -> Manifest:
    store = open_store(url)
    with (
        complaints(store.address),
        store.files.open_input_stream(f"{store.path}/{MANIFEST_NAME}", compression=None) as source,
    ):
        content = source.read()
    count_fetched(len(content))
    return parse_manifest(content)
