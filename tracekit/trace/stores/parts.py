"""Results of tasks, kept where all workers reach them: a directory that they share, or a bucket.

A part is there whole or not at all: in a directory it is renamed into its place, and in object
storage an object appears when all of it has arrived. So a run that was cut goes on with what is
missing, and two workers that do the same part do no harm.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from tracekit.base.errors import UsageError
from tracekit.trace.stores.place import is_url
from tracekit.trace.stores.store import Store, complaints, open_store


class Parts(Struct, frozen=True):
    """A folder of parts; it is sent to workers as the word that names it."""

    place: str  # a directory, or a URL

    def names(self, run: str) -> frozenset[str]:
        """The parts of a run that are there."""
        if not is_url(self.place):
            folder = Path(self.place, run)
            return frozenset(p.name for p in folder.iterdir()) if folder.is_dir() else frozenset()
        store = self._store()
        with complaints(store.address):
            return frozenset(store.listed(f"{store.path}/{run}"))

    def read(self, run: str, name: str) -> bytes | None:
        """One of them; None if it is not there."""
        if not is_url(self.place):
            with suppress(
                OSError
            ):  # what cannot be read is made, and then told if it cannot be kept
                return Path(self.place, run, name).read_bytes()
            return None
        store = self._store()
        with complaints(store.address):
            path = f"{store.path}/{run}/{name}"
            try:
                with store.files.open_input_stream(path, compression=None) as source:
                    content: bytes = source.read()
            except FileNotFoundError:
                return None
        return content

    def write(self, run: str, name: str, content: bytes) -> None:
        """Put one in its place."""
        if is_url(self.place):
            store = self._store()
            with (
                complaints(store.address, "written to"),
                store.files.open_output_stream(
                    f"{store.path}/{run}/{name}", compression=None
                ) as out,
            ):
                out.write(content)
            return
        folder = Path(self.place, run)
        temporary = folder.parent / f".{run}-{name}.{os.getpid()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(content)
            temporary.replace(folder / name)
        except OSError as error:
            raise UsageError(
                f"{self.place} cannot be written to ({error.strerror}): name a directory that can, "
                "or a bucket, with --parts"
            ) from error

    def _store(self) -> Store:
        return open_store(self.place)
