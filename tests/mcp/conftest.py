"""A server whose verbs run in this process, and the SDK's client to ask it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner
from mcp import Client
from mcp.types import CallToolResult

from tests.support.traces import ROOT
from tracekit.base.errors import TracekitError
from tracekit.cli.main import cli
from tracekit.mcp.asking import Asking, Printed
from tracekit.mcp.server import server_of

Call = Callable[..., CallToolResult]


def here(words: Sequence[str]) -> Printed:
    """Run a verb in this process."""
    result = CliRunner().invoke(cli, list(words), standalone_mode=False)
    said = result.stderr
    status = int(result.return_value or 0)
    if result.exception is not None:
        assert isinstance(result.exception, TracekitError | SystemExit), result.exception
        status, said = 2, f"{said}tracekit: {result.exception}"
    return Printed(status, result.stdout_bytes, said)


def caller(traces: Mapping[str, Path | str], ask: Asking = here) -> Call:
    """Asks the server as an MCP client does."""
    server = server_of({name: str(path) for name, path in traces.items()}, ask, timeout_s=60)

    def call(tool: str, **arguments: Any) -> CallToolResult:
        async def asked() -> CallToolResult:
            async with Client(server) as client:
                return await client.call_tool(tool, arguments)

        return anyio.run(asked)

    return call


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("mcp") / "demo"
    made = CliRunner().invoke(cli, ["demo", "-o", str(folder)], standalone_mode=False)
    assert made.exception is None
    found = {f"demo/{name}": folder / name for name in ("real", "lie")}
    incidents = (ROOT / "traces" / "incidents").iterdir()
    return found | {f"incidents/{path.name}": path for path in incidents}


@pytest.fixture(scope="session")
def call(traces: dict[str, Path]) -> Call:
    return caller(traces)
