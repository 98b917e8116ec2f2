"""Rows of a watch log, changed by a test, as the product takes them in: imported, read and judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from tests.support.traces import import_log
from tracekit.judging.judged import Judge, resolve_era
from tracekit.verdict import Judgement


@contextmanager
def judge_of(
    rows: Iterable[Mapping[str, Any]], name: str | Path, *, process_zone: str | None = None
) -> Iterator[Judge]:
    """The judge of a trace of these rows, which about.json of `name` says what it is of."""
    with TemporaryDirectory() as folder:
        log = Path(folder) / "watch.jsonl"
        log.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
        reader = import_log(log, Path(folder) / "trace", name)
        yield Judge(reader, resolve_era(reader, None, None, process_zone))


def divergences_of(rows: Iterable[Mapping[str, Any]], name: str | Path) -> list[Judgement]:
    """What all controllers are told to have done against their rules."""
    with judge_of(rows, name) as judge:
        return judge.report().divergences
