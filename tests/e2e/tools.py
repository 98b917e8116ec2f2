"""Helm and promtool, built from their modules into the cache of the control planes.

python -m tests.e2e.tools helm promtool
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.e2e.build import cache_dir

#: Program: the package that it is built from, at a version.
TOOLS = {
    "helm": "helm.sh/helm/v3/cmd/helm@v3.22.0",
    "promtool": "github.com/prometheus/prometheus/cmd/promtool@v0.316.0",
}


def tool(name: str) -> Path:
    """The program, built when it is not there."""
    package = TOOLS[name]
    folder = cache_dir("tools") / package.rpartition("@")[2]
    if not (folder / name).is_file():
        folder.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "GOBIN": str(folder), "CGO_ENABLED": "0"}
        subprocess.run(["go", "install", package], env=environment, check=True)
    return folder / name


def main() -> None:
    """Build those that are named."""
    for name in sys.argv[1:]:
        sys.stdout.write(f"{tool(name)}\n")


if __name__ == "__main__":
    main()
