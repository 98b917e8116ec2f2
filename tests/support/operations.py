"""How many steps the interpreter takes: the same number on every machine, however busy it is."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable


def operations(run: Callable[[], object]) -> int:
    """The steps of one run: lines begun (each turn of a loop begins some) and calls, C's too.

    Nothing is collected meanwhile: that comes when it comes, and runs what others have asked to be
    told of it (hypothesis does) or left to be ended.
    """
    steps = 0

    def traced(*_: object) -> object:
        nonlocal steps
        steps += 1
        return traced

    def profiled(_frame: object, event: str, _arg: object) -> None:
        nonlocal steps
        steps += event == "c_call"

    tracer, profiler, collecting = sys.gettrace(), sys.getprofile(), gc.isenabled()
    gc.disable()
    sys.settrace(traced)  # type: ignore[arg-type]
    sys.setprofile(profiled)
    try:
        run()
    finally:
        sys.setprofile(profiler)
        sys.settrace(tracer)
        if collecting:
            gc.enable()
    return steps


def growth(run_of: Callable[[int], Callable[[], object]], size: int) -> float:
    """How much steeper steps grow from 2 to 4 times a size than from 1 to 2: 1 linear, 2 quadratic.

    Differences are compared, so what a run costs whatever its size hides nothing.
    """
    few, some, many = (operations(run_of(size * times)) for times in (1, 2, 4))
    return (many - some) / max(1, some - few) / 2
