"""Plant one lie in a watch log: IN OUT. One pod of one Job is removed, as if it had never been."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import zstandard

JOB = "t-fixed-completions/three"


def main(source: str, target: str) -> None:
    """Copy the log without the first pod that the Job created, and without the Events about it."""
    victim = None
    namespace, _, job = JOB.partition("/")
    with (
        Path(source).open("rb") as packed,
        io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(packed), "utf-8") as lines,
        Path(target).open("w", encoding="utf-8") as out,
    ):
        for line in lines:
            row = json.loads(line)
            meta = row["object"].get("metadata", {})
            if row["resource"] == "pods" and meta.get("namespace") == namespace:
                owners = meta.get("ownerReferences", [])
                if victim is None and any(owner["name"] == job for owner in owners):
                    victim = meta["name"]
                if meta["name"] == victim:
                    continue
            if (
                row["resource"] == "events"
                and victim
                and victim in row["object"].get("message", "")
            ):
                continue
            out.write(line)
    sys.stdout.write(f"removed pod {victim} of Job {JOB}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
