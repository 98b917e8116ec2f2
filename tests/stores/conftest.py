from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sql.conftest import trace_path  # noqa: F401 - a fixture
from tests.support.s3 import S3, s3_server, set_environment


@pytest.fixture(scope="session")
def server() -> Iterator[S3]:
    with s3_server() as running:
        yield running


@pytest.fixture
def s3(server: S3, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[S3]:
    """An empty server, named by the environment; copies go into the test's own directory."""
    set_environment(monkeypatch, server, tmp_path / "cache")
    yield server
    server.forget()
