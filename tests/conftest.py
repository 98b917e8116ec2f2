"""For all tests: what tracekit keeps for the user of this machine goes to a place of the tests'."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support import tiers
from tests.support.traces import SHARED_VARIABLE

#: Tests keep whole traces as objects: looking through them for cycles was a quarter of their time.
gc.set_threshold(100_000)

#: Else each process of a test run compiles the package and the tests anew, at 4 s each.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

#: No schema here says that a text is an IRI: the grammars of IRIs that jsonschema would import, were
#: they installed beside it, are 5 s of each process.
sys.modules["rfc3987_syntax"] = None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: a tenth of the time recorders and browsers are waited for."""
    affinity = getattr(os, "sched_getaffinity", None)
    return (len(affinity(0)) if affinity else os.cpu_count() or 1) + 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each test gets its tier before `-m` chooses."""
    tiers.mark(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A test that costs too much for the quick tier fails, though it passed."""
    before_s = tiers.cpu_s()
    yield
    said = tiers.too_dear(item, tiers.cpu_s() - before_s)
    if said is not None:
        pytest.fail(said, pytrace=False)


def pytest_collection_finish() -> None:
    """What is there before the first test stays until the last: nothing of it is looked through."""
    gc.freeze()


# A machine may be busy: an example that takes long is no failure.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory):
    """A cache directory of this test run's own, which its processes share as a user's would."""
    place = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # each has a folder of its own in that of the run
        place = place.parent
    with pytest.MonkeyPatch.context() as patch:
        for variable, folder in (("TRACEKIT_CACHE_DIR", "cache"), (SHARED_VARIABLE, "imported")):
            (place / folder).mkdir(exist_ok=True)
            patch.setenv(variable, str(place / folder))
        yield


@pytest.fixture
def usual_signals() -> Iterator[None]:
    """What ends a process does so: under `nohup`, or in the background, some of it is ignored."""
    usual = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
        signal.SIGHUP: signal.SIG_DFL,
    }
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
