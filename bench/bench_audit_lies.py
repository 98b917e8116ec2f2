"""Lies found in what an audit log alone tells, beside those found in a watch of the same time.

    python -m bench audit_lies [--every]     every kind in one record; with --every in each

Prints a line for each kind of lie that only one of the two finds, then the shares.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict

from tests.lies.test_audit_lies import TRIED, is_found, logged, watched
from tests.replay.test_planted_lies import PLACES


def main(arguments: list[str] | None = None) -> int:
    """Print the table of docs/rescue.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", action="store_true")
    options = parser.parse_args(arguments)
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for kind in TRIED:
        for name in PLACES:
            in_log = is_found(kind, name, *logged(name), strict=False)
            in_watch = is_found(kind, name, *watched(name), strict=False)
            if in_log is None or in_watch is None:
                continue
            family = kind.partition("-")[0]
            counts[family] += Counter({"tried": 1, "log": in_log, "watch": in_watch})
            if in_log != in_watch:
                print(f"{kind:34} {name:14} log {in_log!s:5} watch {in_watch!s:5}", flush=True)
            if not options.every:
                break
    counts["all"] = sum(counts.values(), Counter())
    print("| about | lies | found in the log | found in the watch |\n|---|---|---|---|")
    for family, found in counts.items():
        print(f"| {family} | {found['tried']} | {found['log']} | {found['watch']} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
