"""What the program imports late, or not at all: most of what a quick question costs is imports.

Libraries import things for their own use and do without them the same way; those are hidden. A
module that few questions need is run when somebody asks for something of it. All of this is for
the program: where tracekit is imported as a library, imports are as everybody's.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType
from typing import Any

#: What pyarrow looks for when it is imported. A controller of another package, or a scheduler, may
#: need these, so they are hidden from pyarrow alone.
PYARROWS_OWN = ("numpy", "cloudpickle")
#: pyarrow asks of any list whether that is a series of pandas: that is hidden throughout.
_HIDDEN = ("pandas",)
#: Its docstrings are made when it is imported, and `sql` mostly does without its functions.
_LATE = ("pyarrow.compute",)
#: What pyarrow.compute reads them with.
_DOCSTRINGS = "pyarrow.vendored.docscrape"
#: What the import system itself asks of a module.
_OF_IMPORTS = frozenset({"__class__", "__name__", "__spec__"})


class _Late(ModuleType):
    """A module that is not run yet.

    `importlib.util.LazyLoader` shows a second thread half a module before Python 3.12.3.
    """

    def __getattribute__(self, name: str) -> Any:
        if name not in _OF_IMPORTS:
            loader = ModuleType.__getattribute__(self, "__spec__").loader
            loader.run(self)
        return ModuleType.__getattribute__(self, name)


class _LateLoader(Loader):
    """Runs a module when the first thread asks for something of it; others wait for that."""

    def __init__(self, finder: Finder, loader: Loader) -> None:
        self.finder = finder
        self.loader = loader
        self.lock = RLock()
        self.begun = False

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Make it as its own loader does."""
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Leave it for later."""
        module.__class__ = _Late

    def run(self, module: ModuleType) -> None:
        with self.lock:
            if not self.begun:
                self.begun = True
                with self.finder.also(*PYARROWS_OWN), _without_docstrings():
                    self.loader.exec_module(module)
                module.__class__ = ModuleType


@contextmanager
def _without_docstrings() -> Iterator[None]:
    """Let pyarrow find no parameters described in docstrings, so that it writes none from them."""
    reader = ModuleType(_DOCSTRINGS)
    reader.__dict__["NumpyDocString"] = lambda _: {"Parameters": ()}
    before = sys.modules.get(_DOCSTRINGS)
    sys.modules[_DOCSTRINGS] = reader
    try:
        yield
    finally:
        del sys.modules[_DOCSTRINGS]
        if before is not None:
            sys.modules[_DOCSTRINGS] = before


class Finder:
    """An entry of `sys.meta_path`."""

    def __init__(self) -> None:
        self.hidden = list(_HIDDEN)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raise for what is hidden, run late what is late; the rest is others' to find."""
        if name in self.hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        if name not in _LATE:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _LateLoader(self, spec.loader)
        return spec

    @contextmanager
    def also(self, *names: str) -> Iterator[None]:
        """Hide others for a while."""
        before = self.hidden
        self.hidden = [*before, *names]
        try:
            yield
        finally:
            self.hidden = before


FINDER = Finder()


@contextmanager
def of_a_verb() -> Iterator[None]:
    """Import what a verb needs; it lives as long as the program: no cycle is looked for in it."""
    collecting = FINDER in sys.meta_path and gc.isenabled()
    if collecting:
        gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.freeze()
            gc.enable()


def take_effect() -> None:
    """Import so from now on, in this process."""
    sys.meta_path.insert(0, FINDER)


def take_effect_before(module: str) -> None:
    """The same in a process that does a part of this one's work, which a module does.

    What Arrow looks for is hidden while that is imported: a controller of another package may run
    there, too, and may need it.
    """
    take_effect()
    with FINDER.also(*PYARROWS_OWN):
        import_module(module)
