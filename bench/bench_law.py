"""The law that a simulated trace replays without a divergence, over many random worlds.

    python -m bench law [--seeds 0-2000] [--versions v1.30.14,v1.36.3] [--slow-answers]
                        [--late-kubelets]

World k runs under the k-th version in turn; with --slow-answers the answer to a request takes as
long as its news, so that races of stale caches are lost more often; with --late-kubelets a kubelet
learns of a deletion as late as an informer. A line for each world whose
trace diverges, then how many did, by version.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.simulate.test_law import judged
from tests.support.random_worlds import (
    VERSIONS,
    random_world,
    with_late_kubelets,
    with_slow_answers,
)


def divergences(seed: int, version: str, *, slow_answers: bool, late_kubelets: bool) -> list[str]:
    """What is told of a world's trace, one line each."""
    made = random_world(seed, version)
    if slow_answers:
        made = with_slow_answers(made)
    if late_kubelets:
        made = with_late_kubelets(made)
    with TemporaryDirectory() as folder:
        found = [j for j in judged(made, Path(folder) / "t") if j.divergent]
    return [f"{j.controller} {j.action} {j.verdict.value} {j.object}: {j.why}" for j in found]


def asked(seeds: str, versions: list[str]) -> Iterator[tuple[int, str]]:
    """The worlds of "0-200" or "7,30,55-60"."""
    for part in seeds.split(","):
        first, _, last = part.partition("-")
        for seed in range(int(first), int(last) if last else int(first) + 1):
            yield seed, versions[seed % len(versions)]


def main(arguments: list[str] | None = None) -> int:
    """Exit status 1 if a world diverges."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0-200", help="from-to, without the last, or a list")
    parser.add_argument("--versions", default=",".join(VERSIONS))
    parser.add_argument("--slow-answers", action="store_true")
    parser.add_argument("--late-kubelets", action="store_true")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    worlds = list(asked(options.seeds, options.versions.split(",")))
    tried, bad = Counter(version for _, version in worlds), Counter[str]()
    with ProcessPoolExecutor(options.processes) as pool:
        judge = partial(
            divergences,
            slow_answers=options.slow_answers,
            late_kubelets=options.late_kubelets,
        )
        waiting = {pool.submit(judge, *world): world for world in worlds}
        for done in as_completed(waiting):
            seed, version = waiting[done]
            if told := done.result():
                bad[version] += 1
                print(f"seed {seed} {version}: {len(told)}: {told[0]}", flush=True)
    for version, count in bad.items():
        print(f"{version}: {count} of {tried[version]} worlds diverge")
    print(f"{sum(bad.values())} of {len(worlds)} worlds diverge")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
