"""Completion for shells: verbs and options by click, names of Jobs by a look into the trace."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from tracekit.base.escaping import for_terminal, is_shell_word
from tracekit.base.home import below_home
from tracekit.check.verdict import ACTIONS
from tracekit.trace.format.model import HEADER_NAME
from tracekit.trace.stores.place import is_url, known_copy

_SHELLS = ("bash", "zsh", "fish")
#: What cobra's shells do beside the words that they are given (upstream: spf13/cobra
#: completions.go, ShellCompDirective): complete files, nothing, directories.
_FILES, _NOTHING, _DIRECTORIES = 0, 4, 16
_MOST = 500


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print the completion script for a shell.

    \b
    bash:  tracekit completion bash \\
             > ~/.local/share/bash-completion/completions/tracekit
    zsh:   tracekit completion zsh > ~/.zfunc/_tracekit   (with ~/.zfunc in fpath)
    fish:  tracekit completion fish > ~/.config/fish/completions/tracekit.fish

    `kubectl tracekit` completes by itself where kubectl does: kubectl asks the program
    kubectl_complete-tracekit, which is installed beside it.
    """  # noqa: D301 - \b is click's mark for lines kept as they are
    from tracekit.cli.main import COMPLETE_VAR, cli  # noqa: PLC0415 - main knows this module by name only

    kind = get_completion_class(shell)
    assert kind is not None, shell  # noqa: S101 - click has all of _SHELLS
    click.echo(kind(cli, {}, "tracekit", COMPLETE_VAR).source())


def kubectl_complete() -> None:
    """The program `kubectl_complete-tracekit`: prints what kubectl's completion asks for.

    Its words are those after `kubectl tracekit`, the last of them incomplete. A line for each
    candidate, with its description after a tab, then what else the shell should do.
    """
    words = sys.argv[1:] or [""]
    for line in kubectl_lines(words[:-1], words[-1]):
        click.echo(line)


def kubectl_lines(words: list[str], incomplete: str) -> Iterator[str]:
    """What `kubectl_complete` prints."""
    from tracekit.cli.main import COMPLETE_VAR, cli  # noqa: PLC0415 - main knows this module by name only

    directive = _NOTHING
    asked = ShellComplete(cli, {}, "kubectl tracekit", COMPLETE_VAR)
    for item in asked.get_completions(words, incomplete):
        if item.type in ("dir", "file"):
            directive = _DIRECTORIES if item.type == "dir" else _FILES
        elif is_shell_word(str(item.value).lstrip("-")):
            about = for_terminal(" ".join((item.help or "").split()))
            yield f"{item.value}\t{about}" if about else str(item.value)
    yield f":{directive}"


def complete_trace(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Directories: a trace is one; the shell lists them."""
    del ctx, param
    return [CompletionItem(incomplete, type="dir")]


def complete_file(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Files and directories; the shell lists them."""
    del ctx, param
    return [CompletionItem(incomplete, type="file")]


def complete_key(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """`NAMESPACE/NAME` of the Jobs and CronJobs of the trace that is named before."""
    del param
    names = _names(
        _traces(ctx),
        "SELECT DISTINCT namespace || '/' || name AS word FROM internal._states "
        "WHERE stream IN ('jobs', 'cronjobs') AND starts_with(namespace || '/' || name, $start)",
        incomplete,
    )
    return [CompletionItem(name) for name in names]


def complete_actor(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Users and field managers of the trace that is named before."""
    del param
    names = _names(
        _traces(ctx),
        "SELECT DISTINCT word FROM (SELECT actor AS word FROM internal._rows UNION ALL "
        "SELECT unnest(managers).manager FROM internal._states) "
        "WHERE word IS NOT NULL AND starts_with(word, $start)",
        incomplete,
    )
    return [CompletionItem(name) for name in names]


def complete_cronjob(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """CronJobs of the trace that is named before."""
    del param
    names = _names(
        _traces(ctx),
        "SELECT DISTINCT name AS word FROM internal._states "
        "WHERE stream = 'cronjobs' AND starts_with(name, $start)",
        incomplete,
    )
    return [CompletionItem(name) for name in names]


def complete_job_column(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """What `jobs` can sort by, after a minus the other way round."""
    del ctx, param
    from tracekit.sql.catalog import job_columns  # noqa: PLC0415 - slow to import

    falls = "-" if incomplete.startswith("-") else ""
    names = (f"{falls}{name}" for name in job_columns())
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def complete_namespace(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Namespaces that have Jobs or CronJobs in the trace that is named before."""
    del param
    names = _names(
        _traces(ctx),
        "SELECT DISTINCT namespace AS word FROM internal._states "
        "WHERE stream IN ('jobs', 'cronjobs') AND starts_with(namespace, $start)",
        incomplete,
    )
    return [CompletionItem(name) for name in names]


def complete_version(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Branches whose rules are known, newest first."""
    del ctx, param
    from tracekit.versions.era import NEWEST, OLDEST  # noqa: PLC0415 - slow to import

    branches = (f"v1.{minor}" for minor in range(NEWEST.minor, OLDEST.minor - 1, -1))
    start = incomplete if incomplete.startswith("v") else f"v{incomplete}"
    return [CompletionItem(name) for name in branches if name.startswith(start)]


def complete_gates(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Feature gates, `Name=true` and `Name=false`, after a comma the next one."""
    del ctx, param
    from tracekit.versions.gates import Gate  # noqa: PLC0415 - slow to import

    before, comma, word = incomplete.rpartition(",")
    settings = (f"{gate.value}={on}" for gate in Gate for on in ("true", "false"))
    return [
        CompletionItem(f"{before}{comma}{setting}")
        for setting in settings
        if setting.lower().startswith(word.lower())
    ]


def complete_controllers(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Controllers, after a comma the next one."""
    del ctx, param
    before, comma, word = incomplete.rpartition(",")
    named = before.split(",")
    return [
        CompletionItem(f"{before}{comma}{name}")
        for name in ACTIONS
        if name.startswith(word) and name not in named
    ]


def complete_example(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The shipped queries, with their questions."""
    del ctx, param
    from tracekit.sql.catalog import examples  # noqa: PLC0415 - slow to import

    return [
        CompletionItem(example.name, help=example.question)
        for example in examples()
        if example.name.startswith(incomplete)
    ]


def complete_context(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Contexts of the kubeconfig, whether or not the chosen one is whole."""
    del param
    default = os.environ.get("KUBECONFIG") or str(below_home(".kube", "config") or "")
    names: dict[str, None] = {}
    for file in (ctx.params.get("kubeconfig") or default).split(os.pathsep):
        names.update(dict.fromkeys(_contexts(Path(file))))
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _contexts(file: Path) -> list[str]:
    from tracekit.base.kubeconfig_file import read_kubeconfig  # noqa: PLC0415 - slow to import

    try:
        document = read_kubeconfig(file)
        return [str(context["name"]) for context in document["contexts"]]
    except Exception:  # noqa: BLE001 - a completion must never fail
        return []


def _traces(ctx: click.Context) -> Sequence[Path]:
    named = (ctx.params.get(name) for name in ("traces", "words", "trace"))
    # Click leaves all arguments unread when the last option still waits for its value.
    value = next((found for found in named if found), ctx.args)
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
    return [row["word"] for row in rows if is_shell_word(row["word"])]
