"""Entry point of `tracekit` and `kubectl tracekit`.

Verbs register themselves in `VERBS` by module path and are imported only when they are used, so
that `tracekit --help` stays quick. Errors become one sentence on stderr and exit status 2.
"""

from __future__ import annotations

import importlib
import os
import sys

import click

from tracekit import __version__
from tracekit.cli.damage import damage_noted
from tracekit.cli.units import printable
from tracekit.errors import TracekitError

#: verb -> "module:attribute" of its click command.
VERBS: dict[str, str] = {
    "diagnose": "tracekit.cli.diagnose:diagnose",
    "replay": "tracekit.cli.replay:replay",
    "record": "tracekit.cli.record:record",
    "redact": "tracekit.cli.redact:redact",
    "manifests": "tracekit.cli.manifests:manifests_command",
    "sql": "tracekit.cli.sql:sql",
    "jobs": "tracekit.cli.jobs:jobs",
    "explain": "tracekit.cli.explain:explain",
    "report": "tracekit.cli.report:report",
    "export": "tracekit.cli.export:export",
    "completion": "tracekit.cli.completion:completion",
    "import": "tracekit.cli.import_:import_",
    "versions": "tracekit.cli.versions:versions",
    "cron": "tracekit.cli.cron:cron",
    "info": "tracekit.cli.info:info",
}


#: The variable by which a completion script asks; by whatever name the program was started.
COMPLETE_VAR = "_TRACEKIT_COMPLETE"


class LazyGroup(click.Group):
    """A click group whose commands are imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name every verb, in the order of the table."""
        del ctx
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module that holds the verb."""
        del ctx
        target = VERBS.get(cmd_name)
        if target is None:
            return None
        module_name, attribute = target.split(":")
        command: click.Command = getattr(importlib.import_module(module_name), attribute)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run the verb; an answer that lacks a damaged part of a trace has exit status 2."""
        status = super().invoke(ctx)
        return 2 if damage_noted(ctx) else status


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tracekit")
def cli() -> None:
    """Record and replay what the Kubernetes batch controllers did, and judge it."""


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit: 0 clean, 1 divergences, 2 could not run."""
    try:
        result = cli.main(args=args, complete_var=COMPLETE_VAR, standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except TracekitError as error:
        click.echo(f"tracekit: {printable(str(error))}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        # The reader of a pipe went away (`| head`): not an error, but nothing more can be said.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    sys.exit(result if isinstance(result, int) else 0)
