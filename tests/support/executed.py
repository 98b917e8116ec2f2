"""Which functions of the product run while something is done."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Any


def code_of(name: str) -> frozenset[CodeType]:
    """The code of `module:qualified.name`; of a class: that of its methods, made ones included."""
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = inspect.getattr_static(found, part)
    members = vars(found).values() if inspect.isclass(found) else [found]
    return frozenset(filter(None, map(_code, members)))


def _code(member: Any) -> CodeType | None:
    for attribute in ("fget", "func", "__func__", "__wrapped__"):
        member = getattr(member, attribute, None) or member
    return getattr(member, "__code__", None)


def executed(names: Iterable[str], run: Callable[[], object]) -> set[str]:
    """The names whose code runs in `run`."""
    wanted = {code: name for name in names for code in code_of(name)}
    seen: set[CodeType] = set()

    def called(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in wanted:
            seen.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        run()
    finally:
        sys.setprofile(before)
    return {wanted[code] for code in seen}
