"""Every kind of planted lie at every shipped place: found on its own object, and told nowhere else.

    python -m bench lies [--kinds KIND,…] [--salt 0]      another salt plants in other places

The tests plant each kind once; here each meets all six records. Prints what is missed and what is
told of others, then the shares.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from zlib import crc32

from tests.lies import KINDS, plant
from tests.replay.test_planted_lies import OLD_PLACES, PLACES, record, told_of

#: What may come of a lie.
FOUND, DOUBTED, MISSED = "found", "not found, and the planter doubts it", "missed"
ELSEWHERE, NO_PLACE = "told of others", "no place"


def fate(kind: str, name: str, salt: int) -> tuple[str, str]:
    """What came of a lie, and what to say of it."""
    rng = random.Random(crc32(f"{kind}/{name}/{salt}".encode()))  # noqa: S311
    answer = plant(kind, record(name), rng)
    if answer is None:
        return NO_PLACE, ""
    rows, lie = answer
    told = told_of(rows, name)
    own = {key for key in told if lie.key.startswith(key)}
    others = set(told) - own - set(lie.also)
    if others:
        return ELSEWHERE, f"{lie.description}: {sorted(others)}"
    if own:
        return FOUND, ""
    return (DOUBTED, "") if lie.doubt else (MISSED, lie.description)


def main(arguments: list[str] | None = None) -> int:
    """Exit status 1 if a lie is told of another object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", metavar="KIND,…", help="default: all")
    parser.add_argument("--salt", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    kinds = options.kinds.split(",") if options.kinds else sorted(KINDS)
    tried = [(kind, name, options.salt) for name in PLACES + OLD_PLACES for kind in kinds]
    counts: Counter[str] = Counter()
    with ProcessPoolExecutor(options.processes) as pool:
        for lie, (what, said) in zip(tried, pool.map(fate, *zip(*tried, strict=True)), strict=True):
            counts[what] += 1
            if said:
                print(f"{what}: {lie[0]} in {lie[1]}: {said}", flush=True)
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return 1 if counts[ELSEWHERE] else 0


if __name__ == "__main__":
    sys.exit(main())
