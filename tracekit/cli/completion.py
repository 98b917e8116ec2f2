"""Completion for shells: verbs and options by click, names of Jobs by a look into the trace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from tracekit.trace.model import HEADER_NAME
from tracekit.trace.place import is_url, known_copy

_SHELLS = ("bash", "zsh", "fish")
_MOST = 500


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print the completion script for a shell.

    \b
    bash:  tracekit completion bash > ~/.local/share/bash-completion/completions/tracekit
    zsh:   tracekit completion zsh > ~/.zfunc/_tracekit   (with ~/.zfunc in fpath)
    fish:  tracekit completion fish > ~/.config/fish/completions/tracekit.fish
    """  # noqa: D301 - \b is click's mark for lines kept as they are
    from tracekit.cli.main import cli  # noqa: PLC0415 - main knows this module by name only

    kind = get_completion_class(shell)
    assert kind is not None, shell  # noqa: S101 - click has all of _SHELLS
    click.echo(kind(cli, {}, "tracekit", "_TRACEKIT_COMPLETE").source())


def complete_key(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """`NAMESPACE/NAME` of the Jobs and CronJobs of the trace that is named before."""
    del param
    names = _names(
        _traces(ctx.params),
        "SELECT DISTINCT namespace || '/' || name AS word FROM internal._states "
        "WHERE stream IN ('jobs', 'cronjobs') AND starts_with(namespace || '/' || name, $start)",
        incomplete,
    )
    return [CompletionItem(name) for name in names]


def complete_namespace(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Namespaces that have Jobs in the trace that is named before."""
    del param
    names = _names(
        _traces(ctx.params),
        "SELECT DISTINCT namespace AS word FROM internal._states "
        "WHERE stream = 'jobs' AND starts_with(namespace, $start)",
        incomplete,
    )
    return [CompletionItem(name) for name in names]


def complete_context(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Contexts of the kubeconfig."""
    del ctx, param
    try:
        from kubernetes.config import list_kube_config_contexts  # noqa: PLC0415 - slow to import

        contexts, _ = list_kube_config_contexts()  # type: ignore[no-untyped-call]
    except Exception:  # noqa: BLE001 - a completion must never fail
        return []
    return [CompletionItem(c["name"]) for c in contexts if c["name"].startswith(incomplete)]


def _traces(params: dict[str, Any]) -> Sequence[Path]:
    value = params.get("traces") or params.get("words") or params.get("trace") or ()
    words = [value] if isinstance(value, str) else value
    # A completion does not wait for the network: of a URL what was fetched before will do.
    paths = (known_copy(word) if is_url(word) else Path(word) for word in words)
    return [path for path in paths if (path / HEADER_NAME).is_file()]


def _names(traces: Sequence[Path], query: str, start: str) -> list[str]:
    if not traces:
        return []
    try:
        from tracekit.sql.session import Session  # noqa: PLC0415 - slow to import

        rows = Session(traces).rows(f"{query} ORDER BY word LIMIT {_MOST}", start=start)
    except Exception:  # noqa: BLE001 - a completion must never fail
        return []
    return [row["word"] for row in rows]
