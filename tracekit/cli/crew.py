"""`--processes`: how many judge a trace, and what is said of what they could not judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from tracekit.cli.damage import note_damage
from tracekit.cli.talk import tell
from tracekit.crew.processes import Processes, cores
from tracekit.crew.tasks import Crew
from tracekit.judging.found import Failure

_Command = TypeVar("_Command", bound=Callable[..., Any])
#: Beginning processes takes seconds, as long as it takes to judge so many observations.
WORTH_IT = 100_000


def processes_option(command: _Command) -> _Command:
    """`--processes`."""
    option = click.option(
        "--processes",
        metavar="N",
        type=click.IntRange(min=1),
        help="Judge in so many processes; the answers are the same.  [default: the cores, of "
        f"{WORTH_IT:,} observations on]",
    )
    return option(command)


@contextmanager
def crew_of(processes: int | None, observations: int) -> Iterator[Crew | None]:
    """Those who judge a trace; None: this process alone does."""
    size = processes or (cores() if observations >= WORTH_IT else 1)
    if size == 1:
        yield None
        return
    with Processes(size) as crew:
        yield crew


def tell_failures(failures: Sequence[Failure]) -> None:
    """Say which Jobs could not be judged; the exit status is 2 then, whatever could be answered."""
    for failure in failures:
        note_damage()
        tell(
            f"{failure.namespace}/{failure.name} could not be judged ({failure.why}), and all "
            "others were: cut it out with `tracekit minimise` and report it"
        )
