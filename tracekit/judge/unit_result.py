"""What was found of a unit, small enough to be sent, and in a form that is only ever data.

It may lie in a bucket between two runs: so it is a Parquet file of verdicts as this machine keeps
them, and typed MessagePack in its footer, checked as it is read: nothing in it can be executed as a
pickle could.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from tracekit.check.compare.fields import FieldDifference
from tracekit.check.diff.cross_key_timing import TimingSummary
from tracekit.check.diff.registry import summary_types
from tracekit.check.verdict import Judgement
from tracekit.judge.verdict_table import KEPT_SCHEMA, cached_table

_BESIDE = b"tracekit.found"


class Failure(Struct, frozen=True):
    """A key that could not be judged."""

    namespace: str
    name: str
    why: str


@dataclass(slots=True)
class Found:
    """What a unit has told, before the process as a whole is looked at."""

    jobs: list[tuple[str, str]]
    #: Of its Jobs: all of them, or only the divergences.
    judgements: list[Judgement]
    summary: TimingSummary
    #: What it has told the judges of the other controllers, by their names.
    others: dict[str, Any]
    failures: list[Failure] = field(default_factory=list)
    #: What it took.
    cpu_ns: int = 0


def encoded(found: Found, others: Sequence[Judgement]) -> bytes:
    """As it is sent and kept: a Parquet file of the other judgements, with the rest beside it."""
    summary = {name: _plain_summary(one) for name, one in found.others.items()}
    plain = replace(found, judgements=_plain(found.judgements), others=summary)
    beside = {_BESIDE: base64.b64encode(zlib.compress(msgspec.msgpack.encode(plain), 1))}
    rows = cached_table(others).replace_schema_metadata(beside)
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd")
    return bytes(sink.getvalue())


def decoded(content: bytes) -> tuple[Found, pa.Table]:
    """What was sent, and the table of the other judgements.

    Raises:
        ValueError: It is something else.
    """
    try:
        rows = pq.read_table(pa.BufferReader(content), use_threads=False)
        beside = (rows.schema.metadata or {})[_BESIDE]
        packed = zlib.decompress(base64.b64decode(beside))
        found = msgspec.msgpack.decode(packed, type=Found)
        types = summary_types()
        found.others = {
            name: msgspec.convert(summary, types[name], builtin_types=(bytes,))
            for name, summary in found.others.items()
        }
    except (pa.ArrowException, msgspec.MsgspecError, KeyError, zlib.error) as error:
        raise ValueError("no part of a replay") from error
    if rows.schema.remove_metadata() != KEPT_SCHEMA:
        raise ValueError("no verdicts")
    return found, rows.replace_schema_metadata()


def is_part(content: bytes) -> bool:
    """Whether this is what was sent; a part that is not is made again."""
    try:
        decoded(content)
    except ValueError:
        return False
    return True


def _plain_summary(summary: Any) -> Any:
    """What a judge tells, with its lists of judgements plain."""
    lists = {name: getattr(summary, name) for name in summary.__struct_fields__}
    plain = {
        name: _plain(value)
        for name, value in lists.items()
        if isinstance(value, list) and value and isinstance(value[0], Judgement)
    }
    return msgspec.structs.replace(summary, **plain)


def _plain(judgements: Iterable[Judgement]) -> list[Judgement]:
    """The same with every value that differs as JSON has it, which is how it is told."""
    return [
        msgspec.structs.replace(
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
