"""A record of any length from a real one: its run again and again, one after the other in time.

Each run has a namespace, uids, revisions and times of its own, so that no two rows are alike, and
ends with somebody deleting what is left. Leases and other things of the cluster stay what they
are; their times and revisions go on.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import count, islice
from pathlib import Path

import orjson
import zstandard

_REST_S = 3
_UID = re.compile(
    r"\b[0-9a-f]{4}(?=[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)"
)
_REVISION = re.compile(r'("resourceVersion":")(\d+)(")')
_NAMESPACE = re.compile(r'("(?:namespace|kubernetes\.io/metadata\.name)":"t-[a-z0-9-]+)(")')
_NAMESPACE_NAME = re.compile(r'("name":"t-[a-z0-9-]+)(","uid")')
_TIME = re.compile(r'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)((?:\.\d+)?Z)"')
_RECEIVED = re.compile(r'^\{"recv":(\d+),')
_LISTED = re.compile(r'"type":"(?:LIST\w*|BOOKMARK)"')
_OWN = re.compile(r'"resource":"(?:jobs|pods|cronjobs|events)"')


def laid_out(source: Path, lines: int) -> Iterator[str]:
    """So many lines of a compressed watch log's run, repeated."""
    with source.open("rb") as packed:
        text = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(packed), "utf-8")
        first = [*text]
    run = [*first, *_endings(first)]
    times = [_received(line) for line in run]
    span_s = (max(times) - min(times)) // 10**9 + _REST_S
    revisions = [int(found[2]) for line in run for found in _REVISION.finditer(line)]
    span = max(revisions)
    again = [line for line in run if not _LISTED.search(line)]

    def all_lines() -> Iterator[str]:
        yield from run
        for number in count(1):
            for line in again:
                yield _moved(line, number, number * span_s, number * span)

    return islice(all_lines(), lines)


def _endings(lines: list[str]) -> Iterator[str]:
    """Deletions of what is left at the end: Jobs, then pods."""
    left: dict[tuple[str, str], str] = {}
    for line in lines:
        row = orjson.loads(line)
        uid = row["object"].get("metadata", {}).get("uid")
        if row["resource"] in ("jobs", "pods") and uid is not None:
            left[row["resource"], uid] = line
            if row["type"] == "DELETED":
                del left[row["resource"], uid]
    at_ns = max(_received(line) for line in lines)
    rv = max(int(found[2]) for line in lines for found in _REVISION.finditer(line))
    for number, where in enumerate(sorted(left), 1):
        timed = _RECEIVED.sub(f'{{"recv":{at_ns + number * 1_000_000},', left[where])
        gone = re.sub(r'"type":"\w+"', '"type":"DELETED"', timed, count=1)
        yield _REVISION.sub(rf"\g<1>{rv + number}\3", gone, count=1)


def _received(line: str) -> int:
    return int(orjson.loads(line)["recv"])


def _moved(line: str, number: int, seconds: int, revisions: int) -> str:
    line = _RECEIVED.sub(lambda m: f'{{"recv":{int(m[1]) + seconds * 10**9},', line)
    line = _REVISION.sub(lambda m: f"{m[1]}{int(m[2]) + revisions}{m[3]}", line)
    line = _TIME.sub(lambda m: f'"{_later(m[1], seconds)}{m[2]}"', line)
    if _OWN.search(line):
        line = _UID.sub(f"{number:04x}", line)
        line = _NAMESPACE.sub(rf"\1-{number:04d}\2", line)
        line = _NAMESPACE_NAME.sub(rf"\1-{number:04d}\2", line)
    return line


@lru_cache(100_000)
def _later(time: str, seconds: int) -> str:
    at = datetime.strptime(time, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC)
    return (at + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
