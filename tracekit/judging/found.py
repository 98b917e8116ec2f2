"""What was found of a unit, small enough to be sent, and in a form that is only ever data.

It may lie in a bucket between two runs: so it is typed MessagePack, checked as it is read, and
nothing in it can be executed as a pickle could.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import msgspec
import orjson

from tracekit.compare.fields import FieldDifference
from tracekit.diff.cronjob import CronJobsTold
from tracekit.diff.sweep import Told
from tracekit.diff.ttl import TtlTold
from tracekit.verdict import Judgement


@dataclass(frozen=True, slots=True)
class Failure:
    """A key that could not be judged."""

    namespace: str
    name: str
    why: str


@dataclass(slots=True)
class Found:
    """What a unit has told, before the process as a whole is looked at."""

    jobs: list[tuple[str, str]]
    #: Of its Jobs.
    judgements: list[Judgement]
    told: Told
    cron_jobs: CronJobsTold
    ttl: TtlTold
    failures: list[Failure] = field(default_factory=list)


def encoded(found: Found) -> bytes:
    """As it is sent and kept."""
    cron_jobs, ttl = found.cron_jobs, found.ttl
    plain = replace(
        found,
        judgements=_plain(found.judgements),
        cron_jobs=replace(cron_jobs, judgements=_plain(cron_jobs.judgements)),
        ttl=replace(ttl, judgements=_plain(ttl.judgements), stray=_plain(ttl.stray)),
    )
    return msgspec.msgpack.encode(plain)


def decoded(content: bytes) -> Found:
    """What was sent; `msgspec.MsgspecError` if it is not."""
    return msgspec.msgpack.decode(content, type=Found)


def _plain(judgements: Iterable[Judgement]) -> list[Judgement]:
    """The same with every value that differs as JSON has it, which is how it is told."""
    return [
        replace(
            judgement,
            fields=tuple(
                FieldDifference(*orjson.loads(orjson.dumps(tuple(entry), default=str)))
                for entry in judgement.fields
            ),
        )
        if judgement.fields
        else judgement
        for judgement in judgements
    ]
