"""Entry point of `tracekit` and `kubectl tracekit`.

Verbs register themselves in `VERBS` by module path and are imported only when they are used;
`tracekit --help` and the completion of a verb import none. Errors become one sentence on stderr and
exit status 2.
"""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

import tracekit
from tracekit.base.errors import TracekitError
from tracekit.base.stopping import INTERRUPTS, interrupted_at_once
from tracekit.cli import imports
from tracekit.cli.config import defaults_of
from tracekit.cli.damage import damage_noted
from tracekit.cli.entry import INTERRUPTED
from tracekit.cli.messages import say, tell, tell_error
from tracekit.cli.streams import (
    STDOUT,
    name_what_is_printed,
    say_what_can_be_said,
    stand_in_for_closed,
)
from tracekit.cli.usage import LazyGroup, Unsaid, Verb, sentence

COULD_NOT_RUN = 2
#: 128 + SIGPIPE: the output was cut off, so it is neither "no divergence" nor "a divergence".
READER_GONE = 141
_DEBUG = "--debug"
#: For who shares traces with a group: 027.
_UMASK = "TRACEKIT_UMASK"
_FAULT_CHARS = 200

#: In the order of work, below the headings of `--help`.
SECTIONS: dict[str, dict[str, Verb]] = {
    "Get a record": {
        "demo": Verb(
            "tracekit.cli.demo:demo", "Replay a real trace, then a copy of it with one lie planted."
        ),
        "record": Verb(
            "tracekit.cli.record:record",
            "Record Jobs, CronJobs, pods, Events and what else matters.",
        ),
        "import": Verb(
            "tracekit.cli.import_:import_",
            "Make a trace from what others wrote: logs, snapshots, dumps.",
        ),
        "merge": Verb(
            "tracekit.cli.merge:merge_command", "Merge what several recorders of one cluster saw."
        ),
        "manifests": Verb(
            "tracekit.cli.manifests:manifests_command",
            "Print what a recorder in the cluster needs, as YAML.",
        ),
    },
    "Find out what happened": {
        "info": Verb(
            "tracekit.cli.info:info",
            "Say what a trace holds: versions, streams, coverage, gaps, Jobs.",
        ),
        "diagnose": Verb(
            "tracekit.cli.diagnose:diagnose", "Say what went wrong in TRACE, worst first."
        ),
        "jobs": Verb(
            "tracekit.cli.jobs:jobs", "List the Jobs of a trace: outcome, reason, pods, retries."
        ),
        "explain": Verb(
            "tracekit.cli.explain:explain",
            "Tell what happened to one Job or CronJob, step by step.",
        ),
        "timeline": Verb(
            "tracekit.cli.timeline:timeline", "Tell what happened between two times, in order."
        ),
        "compare": Verb(
            "tracekit.cli.compare:compare", "Set two Jobs side by side: spec, course and outcome."
        ),
        "who": Verb(
            "tracekit.cli.who:who", "Say who changed what: users, controllers and other clients."
        ),
        "report": Verb(
            "tracekit.cli.report:report",
            "Write a report on a trace, a Job or a CronJob as one HTML file.",
        ),
        "sql": Verb("tracekit.cli.sql:sql", "Ask one or several traces questions in SQL."),
        "watch": Verb(
            "tracekit.cli.watch:watch", "Judge TRACE while it is recorded, and tell what comes up."
        ),
    },
    "Judge the controllers": {
        "replay": Verb("tracekit.cli.replay:replay", "Feed TRACE through the ported controllers."),
        "whatif": Verb(
            "tracekit.cli.whatif:whatif",
            "Say what other rules would have done with the Jobs of TRACE.",
        ),
        "upgrade": Verb(
            "tracekit.cli.whatif:upgrade",
            "Say what an upgrade would have done to the Jobs of TRACE.",
        ),
        "simulate": Verb(
            "tracekit.cli.simulate:simulate_command",
            "Run the controllers of a version in a model of a cluster.",
        ),
        "versions": Verb(
            "tracekit.cli.versions:versions", "Show what changed in which Kubernetes version."
        ),
        "cron": Verb(
            "tracekit.cli.cron:cron", "Say when a schedule fires, as a Kubernetes release reads it."
        ),
    },
    "Share and keep": {
        "minimise": Verb(
            "tracekit.cli.minimise:minimise_command",
            "Make the smallest trace that still shows what is wrong.",
        ),
        "redact": Verb(
            "tracekit.cli.redact:redact", "Hash what may be secret in a trace; its verdicts stay."
        ),
        "compact": Verb(
            "tracekit.cli.compact:compact",
            "Make a trace small: nothing in it follows from the rest.",
        ),
        "export": Verb(
            "tracekit.cli.export:export", "Write a trace in the format of another tool."
        ),
    },
    "Set up": {
        "mcp": Verb(
            "tracekit.cli.mcp:mcp", "Serve traces to an agent as an MCP server on stdin and stdout."
        ),
        "completion": Verb(
            "tracekit.cli.completion:completion", "Print the completion script for a shell."
        ),
    },
}
VERBS: dict[str, Verb] = {
    name: verb for section in SECTIONS.values() for name, verb in section.items()
}


#: The variable by which a completion script asks; by whatever name the program was started.
COMPLETE_VAR = "_TRACEKIT_COMPLETE"


class ReaderGoneError(Exception):
    """Whoever read the output went away: an error of no verb, and never a verdict."""


@contextmanager
def _watching_the_pipe() -> Iterator[None]:
    """Tell a broken pipe as what it is: click and rich would each exit 1, as for a divergence.

    And the end of a file, which click takes for Ctrl-D wherever it comes from.
    """
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGoneError from error
    except EOFError as error:
        raise OSError(f"a file is cut off ({error})") from error
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
        command = self._imported(ctx, cmd_name)
        if command is not None and not self.is_listing and not ctx.resilient_parsing:
            verbs = {name: partial(self._imported, ctx, name) for name in self.verbs}
            given = defaults_of(command, cmd_name, verbs)
            ctx.default_map = {**(ctx.default_map or {}), cmd_name: given}
        return command

    def _imported(self, ctx: click.Context, name: str) -> click.Command | None:
        with INTERRUPTS.put_off(), imports.FINDER.also(*imports.PYARROWS_OWN):
            return super().get_command(ctx, name)

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


@click.group(
    cls=MainGroup,
    verbs=VERBS,
    sections=SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
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
@click.option(
    _DEBUG, is_flag=True, help="Show where a fault of tracekit's own happened, for a report."
)
@click.pass_context
def cli(ctx: click.Context, *, no_limits: bool, debug: bool) -> None:
    """Record and replay what the Kubernetes batch controllers did, and judge it."""
    del debug  # `_run` looks for it: a fault may come before this
    if no_limits:
        from tracekit.trace.format.limits import lifted  # noqa: PLC0415 - slow to import

        ctx.with_resource(lifted())


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit.

    0: done, no divergence; 1: divergences; 2: it could not run; 130: interrupted (143, 129: by
    SIGTERM, SIGHUP); 141: whoever read the output went away (`| head`), as other tools say it that
    a broken pipe stops.
    """
    if args is not None:  # a notebook's, whose Ctrl-C is its own
        sys.exit(_status(args))
    with INTERRUPTS.kept():
        try:
            stand_in_for_closed()
            say_what_can_be_said()
            name_what_is_printed()
            with INTERRUPTS.put_off():
                imports.take_effect()
            _keep_private()
            status = _status(None)
        except KeyboardInterrupt:
            status = INTERRUPTED
    sys.exit(128 + INTERRUPTS.number if status == INTERRUPTED else status)


def _status(args: list[str] | None) -> int:
    """The exit status of one command line."""
    if importlib.util.find_spec("fcntl") is None:
        tell("tracekit runs on Linux and macOS: on Windows run it under WSL")
        return COULD_NOT_RUN
    try:
        with _watching_the_pipe():
            status = _run(args)
            sys.stdout.flush()
    except ReaderGoneError:
        status = READER_GONE
        _drop_what_is_left()
    except OSError:  # said by `_run`, or less than the error that it said
        status = COULD_NOT_RUN
        _drop_what_is_left()
    return status


def _drop_what_is_left() -> None:
    """What is left in the buffers has nowhere to go; Python would complain of it at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nowhere, number)


def _keep_private() -> None:
    """What is written holds a cluster's data: for its owner alone, unless said otherwise."""
    mask = os.environ.get(_UMASK, "077")
    if re.fullmatch(r"0?[0-7]{1,3}", mask, re.ASCII) is not None:
        os.umask(int(mask, 8))
    else:
        tell(f"{_UMASK} is no mask of permissions: write it like 027, or leave it out")
        sys.exit(COULD_NOT_RUN)


def _name() -> str:
    """The program as the user calls it."""
    return "kubectl tracekit" if "kubectl" in Path(sys.argv[0]).name else "tracekit"


def _run(args: list[str] | None) -> int:
    """The status of the verb; each error becomes one sentence, but one that Ctrl-C left behind."""
    try:
        with interrupted_at_once():
            result = cli.main(
                args=args, prog_name=_name(), complete_var=COMPLETE_VAR, standalone_mode=False
            )
            sys.stdout.flush()  # a full disk behind it is an error like any other
    except (click.exceptions.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except (BrokenPipeError, ReaderGoneError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever is wrong: 1 means a divergence and nothing else
        if INTERRUPTS.asked.is_set():
            return INTERRUPTED
        _tell(error, args)
    else:
        return result if isinstance(result, int) else 0
    return COULD_NOT_RUN


def _tell_of_system(error: OSError) -> None:
    """Say what the operating system refused."""
    why = error.strerror or str(error)
    if error.filename == STDOUT:
        tell(f"{STDOUT} cannot be written ({why}): make room there, or send the answer elsewhere")
        return
    if not error.filename and error.errno in {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}:
        # Who writes an output says which; without a name is what is put aside.
        tell(f"no room to put work aside ({why}): make room there, or name a folder with TMPDIR")
        return
    named = f"{error.filename}: " if error.filename else ""
    tell(f"{named}{why}; name another file or directory, or mend this one")


def _tell(error: Exception, args: list[str] | None) -> None:
    """Say an error in one sentence."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        say(error.format_message())
    elif isinstance(error, click.ClickException):
        tell(error.message if isinstance(error, Unsaid) else sentence(error))
    elif isinstance(error, TracekitError):
        tell_error(error)
    elif isinstance(error, RecursionError | json.JSONDecodeError):  # no writer makes such a row
        nested = isinstance(error, RecursionError)
        what = "nested too deep" if nested else f"no JSON ({error})"
        tell(f"a text of the trace is {what}: do not trust the trace")
    elif isinstance(error, OSError):
        _tell_of_system(error)
    else:
        _tell_fault(error, args)


def _tell_fault(error: Exception, args: list[str] | None) -> None:
    """Say that tracekit itself is at fault, and where with `--debug`."""
    if isinstance(error, MemoryError):
        tell("there is not enough memory for this: ask about less (--from, --to, -n), or free some")
        return
    words = sys.argv[1:] if args is None else args
    if _DEBUG in words:
        say("".join(traceback.format_exception(error)).rstrip())
    said = f"{type(error).__name__}: {error}"[:_FAULT_CHARS]
    again = "" if _DEBUG in words else f"; `{_name()} {_DEBUG} …` shows where"
    tell(f"this is a fault of tracekit's own ({said}){again}: please report it")
