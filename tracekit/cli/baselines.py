"""`--baseline`: files of accepted findings and divergences, for `diagnose` and `replay`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
import orjson

from tracekit.answers.findings.baseline import Baseline, baseline_from
from tracekit.base.errors import UsageError
from tracekit.base.plain_files import NoPlainFileError, read_bounded
from tracekit.cli.messages import tell
from tracekit.cli.units import NAMED

_Command = TypeVar("_Command", bound=Callable[..., Any])

#: A choice: a hundred thousand findings that are accepted.
_BYTES_MAX = 32 << 20


def baseline_option(command: _Command) -> _Command:
    """`--baseline FILE`."""
    option = click.option(
        "--baseline",
        metavar="FILE",
        type=NAMED,
        help="Leave out what this file accepts; `diagnose --write-baseline` makes one.",
    )
    return option(command)


def read_baseline(name: str) -> Baseline:
    """The baseline in a file."""
    try:
        document = orjson.loads(read_bounded(name, bytes_max=_BYTES_MAX))
    except OSError as error:
        raise UsageError(
            f"the baseline {name} cannot be read ({error.strerror}): name another with --baseline"
        ) from error
    except NoPlainFileError as error:
        raise UsageError(f"the baseline {name} {error}: name another with --baseline") from error
    except ValueError as error:
        raise UsageError(f"the baseline {name} is no JSON ({error}): write it anew") from error
    return baseline_from(document, name)


def tell_unused(baseline: Baseline, name: str) -> None:
    """Say on stderr which entries nothing fitted: what was mended need not be accepted."""
    for entry in baseline.unused:
        what = " ".join(value for key, value in entry.items() if key != "reason")
        tell(f"{name} accepts {what}, which does not occur: drop it")
