"""What every controller of a process is started with.

Upstream: cmd/kube-controller-manager/app/controllermanager.go:ControllerContext.
"""

from __future__ import annotations

from typing import NamedTuple

from tracekit.cluster.api_server import ApiServer
from tracekit.cluster.draws import Draws
from tracekit.eras.constants import Constants
from tracekit.process.client import Client
from tracekit.process.life import Life


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
