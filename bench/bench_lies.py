"""Every kind of planted lie at every shipped place: found on its own object, and told nowhere else.

    python -m bench lies [--kinds KIND,…] [--salt 0]      another salt plants in other places
    python -m bench lies --view 'lag 2 s'     in records as another recorder saw them: bench views
    python -m bench lies --records DIR…      in what `python -m bench fidelity --keep` recorded

The tests plant each kind once; here each meets all six records, or those that are named. What is
not told as a divergence may still be told as not decidable: an action of that object is
`unknowable`, or ambiguous, which it is not in the untouched record. Prints what else is not found,
and what is told of others; then a table by module of `tests/lies`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

from tests.lies import KINDS, draws_of, plant
from tests.replay.test_planted_lies import NEWER, OLD_PLACES, PLACES, UNDETECTABLE, record
from tests.support.erasures import Row
from tests.support.judged_rows import judge_of
from tests.support.traces import about
from tests.support.views import VIEWS, seen
from tracekit.check.verdict import Judgement, Verdict
from tracekit.versions.version import KubeVersion

#: What may come of a lie.
FOUND, OPEN, DOUBTED, MISSED = "found", "told as not decidable", "doubted", "missed"
ELSEWHERE, NO_PLACE = "told of others", "no place"
OLD_MINOR = 23  # `NEWER` is what came after it
COLUMNS = (FOUND, OPEN, DOUBTED, MISSED, ELSEWHERE)


def _where(judgement: Judgement) -> str:
    return f"{judgement.object.namespace}/{judgement.object.name}"


def _undecided(judgements: list[Judgement]) -> Counter[tuple[str, str, str]]:
    """By object and action, why so many of them are not decided."""
    return Counter(
        (_where(j), j.action, j.why)
        for j in judgements
        if j.verdict is Verdict.UNKNOWABLE or j.ambiguous
    )


@cache
def _untouched(name: str, view: str) -> Counter[tuple[str, str, str]]:
    return _undecided(_judged(record(name).rows, name, view))


def _judged(rows: Sequence[Row], name: str, view: str) -> list[Judgement]:
    """What is said of rows, in a view if it is named."""
    with judge_of(seen(view, rows) if view else rows, name) as judge:
        return judge.report().judgements


def fate(kind: str, name: str, salt: int, view: str) -> tuple[str, str]:
    """What came of a lie, and what to say of it."""
    if kind.startswith(NEWER) and KubeVersion.parse(about(name)["gitVersion"]).minor <= OLD_MINOR:
        return NO_PLACE, ""  # about what that version does not know
    answer = plant(kind, record(name), draws_of(kind, Path(name).name, salt))
    if answer is None:
        return NO_PLACE, ""
    rows, lie = answer
    judgements = _judged(rows, name, view)
    told = {_where(j) for j in judgements if j.divergent}
    own = {key for key in told if lie.key.startswith(key)}
    others = told - own - set(lie.also)
    if others:
        return ELSEWHERE, f"{lie.description}: {sorted(others)}"
    if own:
        return FOUND, ""
    new = (_undecided(judgements) - _untouched(name, view)).keys()
    mine = [why for of, action, why in new if lie.key.startswith(of) and action in lie.actions]
    if mine:
        return OPEN, f"{lie.description}: {mine[0]}"
    why = UNDETECTABLE.get(kind) or lie.doubt
    return (DOUBTED if why else MISSED), f"{lie.description}{why and f': {why}'}"


def main(arguments: list[str] | None = None) -> int:
    """Exit status 1 if a lie is told of another object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", metavar="KIND,…", help="default: all; a start ends in *")
    parser.add_argument("--salt", type=int, default=0)
    parser.add_argument("--view", choices=VIEWS, default="", help="one of `bench views --list`")
    parser.add_argument("--records", type=Path, nargs="+", metavar="DIR")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    asked = tuple((options.kinds or "*").split(","))
    kinds = [kind for kind in sorted(KINDS) if _asked(kind, asked)]
    names = [str(path.resolve()) for path in options.records or ()] or [*PLACES, *OLD_PLACES]
    tried = [(kind, name, options.salt, options.view) for name in names for kind in kinds]
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    with ProcessPoolExecutor(options.processes) as pool:
        fates = pool.map(fate, *zip(*tried, strict=True))
        for (kind, name, *_), (what, said) in zip(tried, fates, strict=True):
            for about in (KINDS[kind].__module__.rpartition(".")[2], "all"):
                counts[about][what] += 1
            if said:
                print(f"{what}: {kind} in {name}: {said}", flush=True)
    print(f"| about | {' | '.join(COLUMNS)} |\n|{'---|' * (len(COLUMNS) + 1)}")
    for about in sorted(counts, key=lambda about: (about == "all", about)):
        print(f"| {about} | {' | '.join(str(counts[about][what]) for what in COLUMNS)} |")
    return 1 if counts["all"][ELSEWHERE] else 0


def _asked(kind: str, asked: tuple[str, ...]) -> bool:
    starts = tuple(name[:-1] for name in asked if name.endswith("*"))
    return kind in asked or kind.startswith(starts)


if __name__ == "__main__":
    sys.exit(main())
