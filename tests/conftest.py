"""For all tests: what tracekit keeps for the user of this machine goes to a place of the tests'."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory):
    """A cache directory of this test run's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
