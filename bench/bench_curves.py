"""The curves of each verb over what a trace has much of: `python -m bench curves [--size N]`.

For each verb its steps with 1, 2 and 4 times as many, drawn as bars, and how much of the last no
straight line explains: 0 is linear, 0.375 quadratic.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from bench.curves import DIMENSIONS, bend_of, steps_of

_BAR = "▏▎▍▌▋▊▉█"
_WIDTH = 24


def main() -> None:
    """Print the table of each dimension."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=24)
    parser.add_argument("dimensions", nargs="*", default=list(DIMENSIONS))
    options = parser.parse_args()
    for dimension in options.dimensions:
        print(f"\n{dimension}: {options.size}, {options.size * 2}, {options.size * 4}")
        with tempfile.TemporaryDirectory() as scratch:
            for verb, steps in steps_of(dimension, options.size, Path(scratch)):
                print(f"  {verb:9} bend {bend_of(steps):.2f}")
                for count in steps:
                    print(f"    {count:12,} {_bar(count / max(steps))}", flush=True)


def _bar(share: float) -> str:
    eighths = max(1, round(share * _WIDTH * 8))
    return _BAR[7] * (eighths // 8) + (_BAR[eighths % 8 - 1] if eighths % 8 else "")


if __name__ == "__main__":
    main()
