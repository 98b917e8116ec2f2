"""Options that say which cluster, as kubectl spells them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from tracekit.cli.completion import complete_context
from tracekit.record.credentials.options import ConnectOptions


def connection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--kubeconfig`, `--context`, `--token` and the like."""
    for option in reversed(
        (
            click.option("--kubeconfig", metavar="FILE", help="Kubeconfig to use."),
            click.option(
                "--context",
                metavar="NAME",
                help="Context of the kubeconfig.",
                shell_complete=complete_context,
            ),
            click.option("--cluster", metavar="NAME", help="Cluster of the kubeconfig."),
            click.option("--user", metavar="NAME", help="User of the kubeconfig."),
            click.option("--as", "impersonate_user", metavar="USER", help="User to impersonate."),
            click.option(
                "--as-group",
                "impersonate_groups",
                metavar="GROUP",
                multiple=True,
                help="Group to impersonate; may be given several times.",
            ),
            click.option("--token", metavar="TOKEN", help="Bearer token to use."),
            click.option(
                "--insecure-skip-tls-verify",
                is_flag=True,
                help="Do not check the server's certificate.",
            ),
        )
    ):
        command = option(command)
    return command


def take_connection(values: dict[str, Any]) -> ConnectOptions:
    """What those options say, taken out of all that a command was given."""
    return ConnectOptions(**{name: values.pop(name) for name in ConnectOptions.__struct_fields__})
