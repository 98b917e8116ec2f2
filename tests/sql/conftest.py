"""The shipped traces, imported once per test process, and one without a row."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.support.traces import ALL, TRACES, import_log
from tracekit.sql.session import Session
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.writing.writer import TraceWriter

EMPTY = "empty"


@pytest.fixture(scope="session")
def trace_path(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    root = tmp_path_factory.mktemp("traces")

    @cache
    def path_of(name: str) -> Path:
        target: Path = root / name
        if name == EMPTY:
            TraceWriter(target, TraceHeader(kubernetes_version="v1.36.3")).close()
        else:
            import_log(TRACES / name / "watch.jsonl.zst", target, name)
        return target

    return path_of


@pytest.fixture(scope="session")
def session_of(trace_path: Callable[[str], Path]) -> Callable[[str], Session]:
    @cache
    def session(name: str) -> Session:
        return Session([trace_path(name)])

    return session


@pytest.fixture(params=[*ALL, EMPTY])
def named_session(
    request: pytest.FixtureRequest, session_of: Callable[[str], Session]
) -> tuple[str, Session]:
    return request.param, session_of(request.param)
