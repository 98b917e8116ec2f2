"""`tracekit mcp`: traces for agents, over the Model Context Protocol."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import click

from tracekit.base.errors import UsageError
from tracekit.base.stopping import left_at_once
from tracekit.cli.completion import complete_trace
from tracekit.cli.units import DURATION
from tracekit.trace.stores.stamps import named_traces

_NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,62})=(.+)", re.DOTALL)


@click.command()
@click.argument("traces", nargs=-1, required=True, metavar="TRACE…", shell_complete=complete_trace)
@click.option(
    "--timeout",
    "timeout_s",
    type=DURATION,
    default="2m",
    show_default=True,
    metavar="2m",
    help="End a question that takes longer.",
)
def mcp(traces: tuple[str, ...], timeout_s: float) -> None:
    """Serve traces to an agent as an MCP server on stdin and stdout.

    Its tools only read: diagnose, explain, timeline, who, compare, sql, whatif, coverage. An agent
    names a trace by the last part of its path, or as you name it: NAME=TRACE. It can open no other.
    docs/mcp.md tells what the answers are, how they are bounded, and how text of a trace is marked
    as data.
    """
    if find_spec("mcp") is None:
        raise UsageError("the MCP SDK is not installed: pip install 'kube-tracekit[mcp]'")
    from tracekit.mcp.asking import end_all, in_a_process  # noqa: PLC0415 - the extra
    from tracekit.mcp.server import server_of  # noqa: PLC0415 - the extra

    named = by_name(traces)
    server = server_of(named, in_a_process(timeout_s), timeout_s=timeout_s)
    with left_at_once(end_all):
        server.run("stdio")


def by_name(words: Sequence[str]) -> dict[str, str]:
    """The traces by the names that an agent uses.

    Raises:
        UsageError: A word names no trace, or two have one name.
    """
    found: dict[str, str] = {}
    for word in words:
        match = _NAMED.fullmatch(word)
        given, place = (match[1], match[2]) if match is not None else (None, word)
        traces = named_traces(place)
        if given is not None and len(traces) > 1:
            raise UsageError(f"{place} names {len(traces)} traces: leave {given}= out")
        for trace in traces:
            name = given or re.sub(r"[^A-Za-z0-9._-]", "-", Path(str(trace)).name) or "trace"
            if name in found:
                raise UsageError(f"two traces are called {name}: name one, like other={trace}")
            found[name] = str(trace)
    return found
