"""What every controller of a process is started with.

Upstream: cmd/kube-controller-manager/app/controllermanager.go:ControllerContext.
"""

from __future__ import annotations

from typing import NamedTuple

from tracekit.model.cluster.api_server import ApiServer
from tracekit.model.cluster.draws import Draws
from tracekit.model.process.client import Client
from tracekit.model.process.lifetime import Life
from tracekit.versions.constants import Constants


class ControllerContext(NamedTuple):
    """The process that a controller lives in, and the client and workers that are its own."""

    life: Life
    server: ApiServer
    constants: Constants
    draws: Draws
    client: Client
    workers: int

    def compute(self) -> None:
        """Let the time pass that a sync takes before its first request; for tasks only."""
        loop = self.life.loop
        loop.sleep_until(loop.now_ns + self.draws.sync_ns())
