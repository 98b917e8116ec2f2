"""What a command line says about the cluster."""

from __future__ import annotations

from msgspec import Struct


class ConnectOptions(Struct, frozen=True, kw_only=True):
    """Which cluster, and as whom; None leaves it to the configuration."""

    kubeconfig: str | None = None
    context: str | None = None
    cluster: str | None = None
    user: str | None = None
    impersonate_user: str | None = None
    impersonate_groups: tuple[str, ...] = ()
    token: str | None = None
    insecure_skip_tls_verify: bool = False
