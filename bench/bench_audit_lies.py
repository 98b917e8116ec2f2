"""Lies found in what an audit log alone tells, beside those found in a watch of the same time.

    python -m bench audit_lies [--kinds KIND,…] [--every]

Every kind is planted in one record, with --every in each. Prints a line for each kind of lie that
only one of the two finds, then the shares.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.lies.test_audit_lies import TRIED, is_found, logged, watched
from tests.replay.test_planted_lies import PLACES

#: A record, and whether the lie was found in its log and in its watch.
Tried = tuple[str, bool, bool]


def fates(kind: str, *, every: bool) -> list[Tried]:
    """What came of a kind of lie in the first record that has a place for it, or in each."""
    found: list[Tried] = []
    for name in PLACES:
        in_log = is_found(kind, name, *logged(name), strict=False)
        in_watch = is_found(kind, name, *watched(name), strict=False)
        if in_log is None or in_watch is None:
            continue
        found.append((name, in_log, in_watch))
        if not every:
            break
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print the table of docs/rescue.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", metavar="KIND,…", help="default: all")
    parser.add_argument("--every", action="store_true")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    kinds = options.kinds.split(",") if options.kinds else list(TRIED)
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    with ProcessPoolExecutor(options.processes) as pool:
        answers = pool.map(partial(fates, every=options.every), kinds)
        for kind, tried in zip(kinds, answers, strict=True):
            for name, in_log, in_watch in tried:
                family = kind.partition("-")[0]
                counts[family] += Counter({"tried": 1, "log": in_log, "watch": in_watch})
                if in_log != in_watch:
                    print(f"{kind:34} {name:14} log {in_log!s:5} watch {in_watch!s:5}", flush=True)
    counts["all"] = sum(counts.values(), Counter())
    print("| about | lies | found in the log | found in the watch |\n|---|---|---|---|")
    for family, found in counts.items():
        print(f"| {family} | {found['tried']} | {found['log']} | {found['watch']} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
