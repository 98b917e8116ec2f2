"""Credential plugins, run as kubectl runs them, with a deadline.

The `kubernetes` package runs them without one, and offers no place to hand in another way: its
loader looks its two classes up in its own module, where these stand in their place.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from datetime import datetime
from typing import Any, Final, NamedTuple

from kubernetes.config import kube_config
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.dateutil import parse_rfc3339
from kubernetes.config.exec_provider import ExecProvider

from tracekit.base.children import PluginError, plugin

#: A person may have to log in with a browser; kubectl waits for ever.
DEADLINE_S: Final = 60.0
#: Without a terminal nobody logs in, and a recorder that renews its credentials must go on.
UNATTENDED_DEADLINE_S: Final = 30.0
_failures = threading.local()
#: Fields of an ExecCredential's status (client-go pkg/apis/clientauthentication/v1/types.go).
_TEXTS: Final = ("token", "clientCertificateData", "clientKeyData", "expirationTimestamp")
_CLUSTER_EXTENSION: Final = "client.authentication.k8s.io/exec"


class ExecPlugin(ExecProvider):
    """`users[].user.exec` (client-go plugin/pkg/client/auth/exec)."""

    def __init__(self, exec_config: Any, cwd: str, cluster: Any = None) -> None:
        super().__init__(exec_config, cwd, cluster)
        self._mode = str(exec_config.safe_get("interactiveMode") or "IfAvailable")

    def run(self, previous_response: Any = None) -> dict[str, Any]:
        """The `status` of the ExecCredential that the plugin prints.

        Raises:
            ConfigException: it gives none.
        """
        del previous_response  # gone with v1beta1
        interactive = self._mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
        if self._mode == "Always" and not interactive:
            raise _refused("it needs a terminal")
        self.env["KUBERNETES_EXEC_INFO"] = json.dumps(
            {
                "apiVersion": self.api_version,
                "kind": "ExecCredential",
                "spec": {"interactive": interactive, **self._cluster_info()},
            }
        )
        answer = _ran(self.args, env=self.env, cwd=self.cwd, interactive=interactive)
        try:
            credential = json.loads(answer)
        except ValueError:
            credential = None
        if not isinstance(credential, dict) or not isinstance(credential.get("status"), dict):
            raise _refused("it printed no ExecCredential")
        if credential.get("apiVersion") != self.api_version:
            raise _refused(f"it answers in another apiVersion than {self.api_version}")
        status = dict(credential["status"])
        if any(not isinstance(status.get(name), str | None) for name in _TEXTS):
            raise _refused("its ExecCredential has a value of another type than text")
        return status

    def _cluster_info(self) -> dict[str, Any]:
        if not self.cluster:
            return {}
        cluster = dict(self.cluster.value)
        for extension in cluster.get("extensions") or ():
            if extension["name"] == _CLUSTER_EXTENSION:
                cluster["config"] = extension["extension"]
                break
        return {"cluster": cluster}


class _Token(NamedTuple):
    token: str
    expiry: datetime


class CommandTokens(kube_config.CommandTokenSource):
    """The command of the old `auth-provider: gcp`."""

    def token(self) -> Any:
        """The token that the command prints.

        Raises:
            ConfigException: it gives none.
        """
        answer = _ran([self._cmd, *self._args], env=dict(os.environ), cwd=None, interactive=False)
        try:
            data = json.loads(answer)
            found = data["credential"]
            return _Token(str(found["access_token"]), parse_rfc3339(found["token_expiry"]))
        except (ValueError, KeyError, TypeError):
            raise ConfigException(f"cmd-path: {self._cmd} printed no token") from None


class Loader(kube_config.KubeConfigLoader):
    """The package's loader, which asks no server for a token.

    Renewing `auth-provider: oidc` it waits for as long as the issuer likes, and, where the
    kubeconfig names no certificate authority, sends the client's secret to whoever answers; for
    `gcp` it asks the machine's metadata. client-go has none but oidc any more.
    """

    def __init__(self, *, has_token: bool, **options: Any) -> None:
        """`has_token`: another token is sent than the one that this finds."""
        self._has_token = has_token
        super().__init__(**options, config_base_path=None)

    def _load_auth_provider_token(self) -> Any:
        return None if self._has_token else super()._load_auth_provider_token()

    def _refresh_oidc(self, provider: Any) -> None:
        del provider
        raise _not_renewed("oidc", "id-token")

    def _refresh_gcp_token(self) -> None:
        user: Any = self._user
        provider = user["auth-provider"]
        if "config" not in provider or "cmd-path" not in provider["config"]:
            raise _not_renewed("gcp", "access-token")
        super()._refresh_gcp_token()


def _not_renewed(name: str, token: str) -> ConfigException:
    return ConfigException(
        f"the {token} of its auth-provider {name} is missing or has expired, and is not renewed "
        "here; name an exec plugin that logs in (kubectl oidc-login is one), or give --token"
    )


def _ran(command: list[str], *, env: dict[str, str], cwd: str | None, interactive: bool) -> str:
    deadline_s = DEADLINE_S if interactive else UNATTENDED_DEADLINE_S
    try:
        return plugin(command, env=env, cwd=cwd, interactive=interactive, deadline_s=deadline_s)
    except PluginError as error:
        raise _refused(str(error)) from None


def _refused(reason: str) -> ConfigException:
    """What the package logs, and `why_none` says."""
    _failures.reason = reason
    return ConfigException(f"exec: {reason}")


def why_none() -> str | None:
    """Why the last plugin that this thread ran gave nothing, if it did not; asked once.

    The package's loader logs what a plugin raises, and goes on without credentials.
    """
    reason: str | None = getattr(_failures, "reason", None)
    _failures.reason = None
    return reason


def install() -> None:
    """Have the package's loader run plugins this way."""
    setattr(kube_config, "ExecProvider", ExecPlugin)  # noqa: B010 - the name is not exported
    setattr(kube_config, "CommandTokenSource", CommandTokens)  # noqa: B010 - as above
