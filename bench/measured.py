"""A command of tracekit in a process of its own: CPU seconds, seconds, peak memory."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import NamedTuple

#: Runs the command line, and tells on its last line of stderr what that took.
MEASURED = """
import json, resource, sys, time
from tracekit.cli.main import main
begin = time.monotonic()
try:
    main()
finally:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print("\\n" + json.dumps({"cpu": sum(u.ru_utime + u.ru_stime for u in used),
        "rss": max(u.ru_maxrss for u in used) // 1024, "wall": time.monotonic() - begin}),
        file=sys.stderr)
"""


class Used(NamedTuple):
    """What a command took: CPU time of all its processes, memory of the largest."""

    cpu_s: float
    wall_s: float
    rss_mib: int


def used(stderr: str) -> Used:
    """What stands on the last line of stderr."""
    found = json.loads(stderr.strip().splitlines()[-1])
    return Used(found["cpu"], found["wall"], found["rss"])


def run(arguments: list[str]) -> tuple[subprocess.CompletedProcess[str], Used | None]:
    """Run a command; what it took, None where it failed."""
    ran = subprocess.run(
        [sys.executable, "-c", MEASURED, *arguments], capture_output=True, text=True, check=False
    )
    return ran, used(ran.stderr) if ran.returncode in (0, 1) else None
