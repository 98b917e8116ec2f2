"""What a command line says about the cluster."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectOptions:
    """Which cluster, and as whom; None leaves it to the configuration."""

    kubeconfig: str | None = None
    context: str | None = None
    cluster: str | None = None
    user: str | None = None
    impersonate_user: str | None = None
    impersonate_groups: tuple[str, ...] = ()
    token: str | None = None
    insecure_skip_tls_verify: bool = False
