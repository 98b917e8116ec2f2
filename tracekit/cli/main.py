"""Entry point of `tracekit` and `kubectl tracekit`.

Verbs register themselves in `VERBS` by module path and are imported only when they are used, so
that `tracekit --help` stays quick. Errors become one sentence on stderr and exit status 2.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

import tracekit
from tracekit.cli import imports
from tracekit.cli.damage import damage_noted
from tracekit.cli.talk import say, tell, tell_error
from tracekit.cli.usage import LazyGroup, Unsaid, sentence
from tracekit.errors import TracekitError

COULD_NOT_RUN = 2
INTERRUPTED = 130
#: 128 + SIGPIPE: the output was cut off, so it is neither "no divergence" nor "a divergence".
READER_GONE = 141

#: verb -> "module:attribute" of its click command.
VERBS: dict[str, str] = {
    "demo": "tracekit.cli.demo:demo",
    "diagnose": "tracekit.cli.diagnose:diagnose",
    "watch": "tracekit.cli.watch:watch",
    "replay": "tracekit.cli.replay:replay",
    "simulate": "tracekit.cli.simulate:simulate_command",
    "record": "tracekit.cli.record:record",
    "redact": "tracekit.cli.redact:redact",
    "merge": "tracekit.cli.merge:merge_command",
    "minimise": "tracekit.cli.minimise:minimise_command",
    "compact": "tracekit.cli.compact:compact",
    "manifests": "tracekit.cli.manifests:manifests_command",
    "sql": "tracekit.cli.sql:sql",
    "jobs": "tracekit.cli.jobs:jobs",
    "explain": "tracekit.cli.explain:explain",
    "report": "tracekit.cli.report:report",
    "export": "tracekit.cli.export:export",
    "completion": "tracekit.cli.completion:completion",
    "import": "tracekit.cli.import_:import_",
    "versions": "tracekit.cli.versions:versions",
    "whatif": "tracekit.cli.whatif:whatif",
    "upgrade": "tracekit.cli.whatif:upgrade",
    "cron": "tracekit.cli.cron:cron",
    "info": "tracekit.cli.info:info",
}


#: The variable by which a completion script asks; by whatever name the program was started.
COMPLETE_VAR = "_TRACEKIT_COMPLETE"


class ReaderGoneError(Exception):
    """Whoever read the output went away: an error of no verb, and never a verdict."""


@contextmanager
def _watching_the_pipe() -> Iterator[None]:
    """Tell a broken pipe as what it is: click and rich would each exit 1, as for a divergence."""
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGoneError from error
    except SystemExit as left:
        if isinstance(left.__context__, BrokenPipeError):
            raise ReaderGoneError from left.__context__
        raise


class MainGroup(LazyGroup):
    """All verbs, with what holds for each of them."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the command line; this prints help, too."""
        with _watching_the_pipe():
            return super().make_context(*args, **kwargs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the verb."""
        with imports.FINDER.also(*imports.PYARROWS_OWN):
            return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> object:
        """Run the verb; an answer that lacks a damaged part of a trace has exit status 2."""
        with _watching_the_pipe():
            status = super().invoke(ctx)
        return COULD_NOT_RUN if damage_noted(ctx) else status


def _tell_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    """As click's own option does it, which wants to know the version before anybody asks."""
    if asked and not ctx.resilient_parsing:
        click.echo(f"tracekit, version {tracekit.__version__}")
        ctx.exit()


@click.group(cls=MainGroup, verbs=VERBS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_tell_version,
    help="Show the version and exit.",
)
@click.option(
    "--no-limits",
    is_flag=True,
    help="Trust the traces: read rows and row groups of any size and nesting.",
)
@click.pass_context
def cli(ctx: click.Context, *, no_limits: bool) -> None:
    """Record and replay what the Kubernetes batch controllers did, and judge it."""
    if no_limits:
        from tracekit.trace.format.limits import lifted  # noqa: PLC0415 - slow to import

        ctx.with_resource(lifted())


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit.

    0: done, no divergence; 1: divergences; 2: it could not run; 130: interrupted; 141: whoever read
    the output went away (`| head`), as other tools say it that a broken pipe stops.
    """
    if args is None:  # the program, and nobody's notebook
        imports.take_effect()
    if importlib.util.find_spec("fcntl") is None:
        tell("tracekit runs on Linux and macOS: on Windows run it under WSL")
        sys.exit(COULD_NOT_RUN)
    try:
        with _watching_the_pipe():
            status = _run(args)
            sys.stdout.flush()
    except ReaderGoneError:
        status = READER_GONE
        # What is left in the buffers has nowhere to go; Python would complain of it at its end.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.__stdout__, sys.__stderr__):
            if stream is not None:
                os.dup2(nowhere, stream.fileno())
    sys.exit(status)


def _name() -> str:
    """The program as the user calls it."""
    return "kubectl tracekit" if "kubectl" in Path(sys.argv[0]).name else "tracekit"


def _run(args: list[str] | None) -> int:
    """The status of the verb; each error becomes one sentence."""
    try:
        result = cli.main(
            args=args, prog_name=_name(), complete_var=COMPLETE_VAR, standalone_mode=False
        )
    except click.exceptions.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        if isinstance(error, click.exceptions.NoArgsIsHelpError):
            say(error.format_message())
        else:
            tell(error.message if isinstance(error, Unsaid) else sentence(error))
    except TracekitError as error:
        tell_error(error)
    except (RecursionError, json.JSONDecodeError) as error:  # no writer makes such a row
        nested = isinstance(error, RecursionError)
        what = "nested too deep" if nested else f"no JSON ({error})"
        tell(f"a text of the trace is {what}: do not trust the trace")
    except BrokenPipeError:
        raise
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        tell(f"{what}; name another file or directory, or mend this one")
    else:
        return result if isinstance(result, int) else 0
    return COULD_NOT_RUN
