from __future__ import annotations

from collections.abc import Iterator

import pytest

from tracekit.crew.cluster import Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Two Dask workers on this machine, for all tests."""
    with Cluster("local", 2) as running:
        yield running
