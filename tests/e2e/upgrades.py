"""Cut a pair of twins out of two recordings of the same scenarios, for traces/upgrades.

    python -m tests.e2e.upgrades OLD NEW --jobs t-twin-suspended/zero-suspended -o traces/upgrades/NAME

OLD and NEW are folders as `generate` leaves them. What stays is the watch log of the Jobs (those of the
CronJobs of `--cron-jobs`), their pods and their Events, with the leases, as `before` and `after`; no audit log.
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


def kept_rows(
    rows: Iterable[RawObject], jobs: Sequence[str], cron_jobs: Sequence[str] = ()
) -> Iterator[RawObject]:
    """The rows of the Jobs and CronJobs `namespace/name`, and those that are about no object.

    Of a CronJob, its Jobs stay, too, and those that bear a name which one of its slots may want.
    """
    every = list(rows)
    names = {tuple(job.split("/")) for job in jobs}
    crons = {tuple(cron_job.split("/")) for cron_job in cron_jobs}
    uids = {row["object"]["metadata"]["uid"] for row in every if _is_one_of(row, names, crons)}
    pods = {row["object"]["metadata"]["uid"] for row in every if _is_pod_of(row, uids)}
    namespaces = {name[0] for name in names | crons}
    for row in every:
        meta = row["object"].get("metadata", {})
        if row["type"] not in ("LIST", "ADDED", "MODIFIED", "DELETED") or row["resource"] in WHOLE:
            yield row
        elif row["resource"] == "events":
            about = row["object"].get("involvedObject", {})
            if about.get("uid") in uids:
                yield row
        elif meta.get("uid") in uids | pods or (
            row["resource"] == "namespaces" and meta["name"] in namespaces
        ):
            yield row


def _is_one_of(row: RawObject, jobs: set[tuple[str, ...]], cron_jobs: set[tuple[str, ...]]) -> bool:
    meta = row["object"].get("metadata", {})
    where = (meta.get("namespace"), meta.get("name"))
    if row["resource"] == "cronjobs":
        return where in cron_jobs
    starter = (meta.get("namespace"), str(meta.get("name", "")).rpartition("-")[0])
    return row["resource"] == "jobs" and (where in jobs or starter in cron_jobs)


def _is_pod_of(row: RawObject, jobs: set[str]) -> bool:
    owners = row["object"].get("metadata", {}).get("ownerReferences", ())
    return row["resource"] == "pods" and any(owner["uid"] in jobs for owner in owners)


def cut(source: Path, target: Path, jobs: Sequence[str], cron_jobs: Sequence[str]) -> None:
    """Write the part of one recording."""
    target.mkdir(parents=True)
    rows = kept_rows(audit.lines(source / "watch.jsonl.zst"), jobs, cron_jobs)
    text = b"".join(orjson.dumps(row) + b"\n" for row in rows)
    packed = zstandard.ZstdCompressor(level=19).compress(text)
    (target / "watch.jsonl.zst").write_bytes(packed)
    facts = json.loads((source / "about.json").read_text())
    about = {name: facts[name] for name in KEPT_FACTS} | {"jobs": list(jobs)}
    if cron_jobs:
        about["cronjobs"] = list(cron_jobs)
    (target / "about.json").write_text(json.dumps(about, indent=1) + "\n")


def main() -> None:
    """Cut both sides."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--jobs", default="", help="namespace/name, comma separated")
    parser.add_argument("--cron-jobs", default="", help="the same, with all their Jobs")
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    for side, source in (("before", options.old), ("after", options.new)):
        jobs, cron_jobs = (
            [name for name in text.split(",") if name] for text in (options.jobs, options.cron_jobs)
        )
        cut(source, options.out / side, jobs, cron_jobs)


if __name__ == "__main__":
    main()
