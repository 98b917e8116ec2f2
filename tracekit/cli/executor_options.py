"""`--processes`, `--scheduler`, `--parts`: who judges, and what is said of what they could not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tracekit.base.errors import UsageError
from tracekit.cli import imports
from tracekit.cli.damage import note_damage
from tracekit.cli.messages import tell
from tracekit.cli.units import NAMED, PROCESSES
from tracekit.judge.executors.tasks import Executor
from tracekit.trace.stores.cache_folder import cache_folder
from tracekit.trace.stores.parts import Parts

if TYPE_CHECKING:
    from tracekit.judge.unit_result import Failure

_Command = TypeVar("_Command", bound=Callable[..., Any])
#: Beginning processes takes seconds, as long as it takes to judge so many observations.
WORTH_IT = 100_000


def executor_options(command: _Command) -> _Command:
    """`--processes`, `--scheduler` and `--parts` for one trace or many."""
    return _executor_options(
        command,
        "Judge in so many processes; the answers are the same.  [default: the cores, of "
        f"{WORTH_IT:,} observations on]",
    )


def many_options(command: _Command) -> _Command:
    """The same where only many traces are divided."""
    return _executor_options(
        command,
        "Of many traces so many at a time; the answers are the same.  [default: the cores]",
    )


def _executor_options(command: _Command, help_text: str) -> _Command:
    processes = click.option("--processes", metavar="N", type=PROCESSES, help=help_text)
    scheduler = click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Judge on the Dask workers of this scheduler, like tcp://HOST:8786; local: on workers "
        "of this machine.",
    )
    parts = click.option(
        "--parts",
        type=NAMED,
        metavar="PLACE",
        help="Keep what is found part by part in this directory or bucket, which all workers "
        "reach: a run that was cut goes on there.  [default with --scheduler local: the cache]",
    )
    return processes(scheduler(parts(command)))


def check_one(scheduler: str | None, parts: str | None) -> None:
    """Refuse what divides many traces, or keeps their answers, where there is one.

    Raises:
        UsageError: One of them is given.
    """
    for name, value, does in (
        ("--scheduler", scheduler, "divides"), ("--parts", parts, "keeps the answers of"),
    ):  # fmt: skip
        if value is not None:
            raise UsageError(f"{name} {does} many traces, and this is one: leave it out")


@contextmanager
def executor_of(
    processes: int | None, scheduler: str | None, observations: int
) -> Iterator[Executor | None]:
    """Those who judge; None: this process alone does."""
    from tracekit.judge.executors.processes import Processes, cores  # noqa: PLC0415 - takes a while

    if scheduler is not None:
        from tracekit.judge.executors.cluster import Cluster  # noqa: PLC0415 - an extra, and slow to import

        with Cluster(scheduler, processes or cores()) as cluster:
            yield cluster
        return
    size = processes or (cores() if observations >= WORTH_IT else 1)
    if size == 1:
        yield None
        return
    with Processes(
        size, partial(imports.take_effect_before, "tracekit.judge.partitioned")
    ) as executor:
        yield executor


def parts_of(place: str | None, scheduler: str | None) -> Parts | None:
    """Where parts are kept; None: nowhere."""
    if place is None and scheduler == "local":
        return Parts(str(cache_folder() / "parts"))
    return Parts(place) if place is not None else None


def tell_failures(failures: Sequence[Failure]) -> None:
    """Say which Jobs could not be judged; the exit status is 2 then, whatever could be answered."""
    for failure in failures:
        note_damage()
        tell(
            f"{failure.namespace}/{failure.name} could not be judged ({failure.why}), and all "
            "others were: cut it out with `tracekit minimise` and report it"
        )
