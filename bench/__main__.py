"""Run every bench, or those named: `python -m bench [NAME…]`, with NAME `sql` for bench_sql.py.

Options go to the one bench that they follow: `python -m bench fidelity --minutes 2`.

Each bench_*.py with a `main()` runs in a process of its own, so that memory figures are its own,
and prints the ratios that it measures side by side in one run. Exit status 1 if one failed.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from pathlib import Path

#: Only when they are named: many minutes, and for fidelity control planes and Go to build them.
ON_REQUEST = (
    "audit_lies",
    "curves",
    "fidelity",
    "large",
    "law",
    "lies",
    "minimise",
    "questions",
    "views",
)
FOLDER = Path(__file__).resolve().parent


def benches() -> dict[str, Path]:
    """The benches by name."""
    found = {}
    for path in sorted(FOLDER.glob("bench_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body):
            found[path.stem.removeprefix("bench_")] = path
    return found


def main(names: list[str]) -> int:
    """Run the benches of these names, all without any."""
    known = benches()
    first_option = next((i for i, word in enumerate(names) if word.startswith("-")), len(names))
    names, options = names[:first_option], names[first_option:]
    if options and len(names) != 1:
        print("Options go to one bench: name it before them.", file=sys.stderr)
        return 2
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"There is no bench {unknown[0]!r}; choose from {', '.join(known)}.", file=sys.stderr)
        return 2
    failed = []
    for name in names or [name for name in known if name not in ON_REQUEST]:
        print(f"\n== {name} ==", flush=True)
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, str(known[name]), *options],
            cwd=FOLDER.parent,
            env={**os.environ, "PYTHONPATH": str(FOLDER.parent)},
            check=False,
        )
        print(f"({time.perf_counter() - started:.0f} s)", flush=True)
        if done.returncode:
            failed.append(name)
    if failed:
        print(f"\nFailed: {', '.join(failed)}.", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
