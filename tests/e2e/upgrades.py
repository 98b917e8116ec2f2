"""Cut a pair of twins out of two recordings of the same scenarios, for traces/upgrades.

    python -m tests.e2e.upgrades OLD NEW --jobs t-twin-suspended/zero-suspended -o traces/upgrades/NAME

OLD and NEW are folders as `generate` leaves them. What stays is the watch log of the Jobs, their pods
and their Events, with the leases, as `before` and `after`; no audit log.
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import orjson
import zstandard

from tests.e2e import audit
from tests.e2e.api import RawObject

#: Rows of these streams stay whole: they say when who was in charge.
WHOLE = ("leases",)
KEPT_FACTS = ("version", "gitVersion", "feature_gates", "kcm_flags", "controller_restart")


def kept_rows(rows: Iterable[RawObject], jobs: Sequence[str]) -> Iterator[RawObject]:
    """The rows of the Jobs `namespace/name`, and those that are about no object."""
    every = list(rows)
    names = {tuple(job.split("/")) for job in jobs}
    uids, pods = set(), set()
    for row in every:
        meta = row["object"].get("metadata", {})
        where = (meta.get("namespace"), meta.get("name"))
        if row["resource"] == "jobs" and where in names:
            uids.add(meta["uid"])
        elif row["resource"] == "pods" and any(
            owner["uid"] in uids for owner in meta.get("ownerReferences", ())
        ):
            pods.add(meta["uid"])
    for row in every:
        meta = row["object"].get("metadata", {})
        if row["type"] not in ("LIST", "ADDED", "MODIFIED", "DELETED") or row["resource"] in WHOLE:
            yield row
        elif row["resource"] == "events":
            about = row["object"].get("involvedObject", {})
            if about.get("uid") in uids:
                yield row
        elif meta.get("uid") in uids | pods or (
            row["resource"] == "namespaces" and any(meta["name"] == name[0] for name in names)
        ):
            yield row


def cut(source: Path, target: Path, jobs: Sequence[str]) -> None:
    """Write the part of one recording."""
    target.mkdir(parents=True)
    rows = kept_rows(audit.lines(source / "watch.jsonl.zst"), jobs)
    text = b"".join(orjson.dumps(row) + b"\n" for row in rows)
    packed = zstandard.ZstdCompressor(level=19).compress(text)
    (target / "watch.jsonl.zst").write_bytes(packed)
    facts = json.loads((source / "about.json").read_text())
    about = {name: facts[name] for name in KEPT_FACTS} | {"jobs": list(jobs)}
    (target / "about.json").write_text(json.dumps(about, indent=1) + "\n")


def main() -> None:
    """Cut both sides."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--jobs", required=True, help="namespace/name, comma separated")
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    for side, source in (("before", options.old), ("after", options.new)):
        cut(source, options.out / side, options.jobs.split(","))


if __name__ == "__main__":
    main()
