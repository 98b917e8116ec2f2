"""A recorder's traces brought to a bucket: local disk first, and from there what is finished.

What is recorded lies on this machine until all of it is in the bucket: a store that is away costs
nothing but disk. Segments never change once in place, so each goes up once; header and manifest,
small and changing, go after them, so that what they tell of is there. What compaction has merged is
taken out of the bucket once the merged one is in it. A trace that a rotation ended goes from this
machine when the bucket has it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tracekit.base.errors import TracekitError
from tracekit.record.operation.rotation import delete_trace
from tracekit.trace.format.model import HEADER_NAME, LOG_DIR, MANIFEST_NAME
from tracekit.trace.format.segments import all_segments, split_covered
from tracekit.trace.stores.cache_folder import cache_folder
from tracekit.trace.stores.rotated import rotated_traces
from tracekit.trace.stores.store import Store, complaints, open_store

#: So often what is new goes up.
EVERY_S: Final = 15.0


def spool_of(url: str) -> Path:
    """Where the traces lie that are to go to a URL; the next recorder goes on with it."""
    from tracekit.trace.stores.mirror import folder_of  # noqa: PLC0415 - slow to import
    from tracekit.trace.stores.store import locate  # noqa: PLC0415 - as above

    return cache_folder() / "spool" / folder_of(locate(url)).relative_to(cache_folder() / "traces")


@dataclass(slots=True)
class _Up:
    """What the bucket has of one trace."""

    segments: dict[str, int | None]  # with their sizes
    #: The small files as they went up.
    small: dict[str, bytes] = field(default_factory=dict)


class Uploader:
    """Brings the traces of a folder to a URL, beside the recorder that writes them."""

    def __init__(self, folder: Path, url: str, say: Callable[[str], None]) -> None:
        """`say` is told when the store fails, and when it is back: a sentence each."""
        self._folder = folder
        self._url = url.rstrip("/")
        self._say = say
        self._store: Store | None = None
        self._known: dict[str, _Up] = {}
        self._failing = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="upload", daemon=True)

    def start(self) -> None:
        """Begin; nothing is asked of the store here."""
        self._thread.start()

    def close(self) -> None:
        """Bring up what is left, once more."""
        self._stop.set()
        self._thread.join()
        self._try()
        if self._failing:
            self._say(
                f"What is not in {self._url} yet lies in {self._folder}; the next `record -o "
                f"{self._url}` brings it there."
            )

    def _run(self) -> None:
        while not self._stop.wait(EVERY_S):
            self._try()

    def _try(self) -> None:
        try:
            self.upload()
        except (TracekitError, OSError) as error:
            if not self._failing:
                self._say(f"Not uploading for now: {error}")
            self._failing = True
            self._store = None
        else:
            if self._failing:
                self._say(f"Uploading to {self._url} again.")
            self._failing = False

    def upload(self) -> None:
        """Bring up what is new."""
        traces = rotated_traces(self._folder)
        for trace in traces:
            self._upload(trace)
            if trace != traces[-1] and delete_trace(trace):  # not while somebody writes to it
                self._known.pop(trace.name, None)

    def _upload(self, trace: Path) -> None:
        self._store = store = self._store or open_store(self._url)
        place = f"{store.path}/{trace.name}"
        with complaints(store.address, "written to"):
            if trace.name not in self._known:
                there = store.listed(f"{place}/{LOG_DIR}")
                self._known[trace.name] = _Up({name: info.size for name, info in there.items()})
            up = self._known[trace.name]
            # Read before the segments are listed: so they tell of nothing that is not up yet.
            contents = {name: _content(trace / name) for name in (MANIFEST_NAME, HEADER_NAME)}
            live, _ = split_covered(all_segments(trace))
            for segment in live:
                name, content = segment.path.name, None
                if up.segments.get(name) != _size(segment.path):
                    content = _content(segment.path)
                    if content is None:
                        return  # merged just now: the next time
                    _put(store, f"{place}/{LOG_DIR}/{name}", content)
                    up.segments[name] = len(content)
            for name, content in contents.items():
                if content is not None and up.small.get(name) != content:
                    _put(store, f"{place}/{name}", content)
                    up.small[name] = content
            for name in sorted(up.segments.keys() - {segment.path.name for segment in live}):
                store.files.delete_file(f"{place}/{LOG_DIR}/{name}")
                del up.segments[name]


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def _put(store: Store, path: str, content: bytes) -> None:
    with store.files.open_output_stream(path, compression=None) as out:
        out.write(content)
