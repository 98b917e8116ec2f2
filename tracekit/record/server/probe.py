"""The first look at a cluster: can it be reached, who is it, which version and gates has it.

Start-up failures become sentences here; once a recording runs, the same failures are only waited
out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Struct, field

from tracekit.base.errors import ClusterError
from tracekit.record.failures import (
    ConnectionFailed,
    CredentialsFailed,
    Forbidden,
    NotFound,
    Redirected,
    RequestFailed,
    Throttled,
    TlsFailed,
    Unauthorized,
)
from tracekit.record.server.transport import ApiClient

_GATE = re.compile(
    rb'kubernetes_feature_enabled\{name="([A-Za-z0-9]{1,100})",stage="[^"]*"\} ([01])'
)
#: What a header takes of a version or a uid: they have a few dozen such characters.
_WORD = re.compile(r"[A-Za-z0-9.+~_-]{1,100}")
#: Words in the names of gates that the batch controllers read. A header names only these: a gate
#: that no controller here knows must not stop a replay.
_CONTROLLER_GATES = re.compile(
    r"Job|TTLAfterFinished|PodReplacementPolicy|PodDisruptionConditions|MutablePodResources"
)
_METRIC_LINES_MAX = 500_000
#: API servers have one to two hundred. A header holds what there is, and is read whole by every
#: command: a server that never ends would have it larger than any reader takes.
_GATES_MAX = 5_000

_T = TypeVar("_T")


class ClusterInfo(Struct, frozen=True):
    """What is known of a cluster before its first list."""

    version: str | None
    #: Gates of the API server; empty when /metrics may not be read.
    feature_gates: dict[str, bool] = field(default_factory=dict)
    #: The uid of kube-system, which tells clusters apart; None when it may not be seen.
    cluster_uid: str | None = None
    #: What could not be learnt, as sentences.
    notes: tuple[str, ...] = ()

    @property
    def controller_gates(self) -> dict[str, bool]:
        """The gates that the batch controllers read."""
        return {n: on for n, on in self.feature_gates.items() if _CONTROLLER_GATES.search(n)}

    @property
    def minor(self) -> int:
        """The minor version, 0 when unknown."""
        match = re.match(r"v?1\.([0-9]{1,6})(?![0-9])", self.version or "")
        return int(match[1]) if match else 0


def asked(
    client: ApiClient, what: str, request: Callable[[], _T], rights: str = "tracekit manifests"
) -> _T:
    """Make a request of the start-up; its failing is a sentence for the user.

    `rights`: the command that prints the RBAC it needs.

    Raises:
        ClusterError: the request failed.
    """
    host, source = client.connection.shown_host, client.connection.source
    try:
        return request()
    except TlsFailed as error:
        raise ClusterError(
            f"The TLS connection to {host} failed ({error.reason}); check certificate-authority "
            f"in {source}, or use --insecure-skip-tls-verify for a server you trust anyway."
        ) from error
    except ConnectionFailed as error:
        raise ClusterError(
            f"The API server {host} cannot be reached ({error.reason}); check that it runs and "
            f"that {source} names the right server."
        ) from error
    except CredentialsFailed as error:
        raise ClusterError(
            f"The credentials of {source} cannot be used ({error.reason}); log in again or choose "
            "another user."
        ) from error
    except Unauthorized as error:
        raise ClusterError(
            f"The API server {host} does not accept the credentials of {source} (401); log in "
            "again or choose another user."
        ) from error
    except Forbidden as error:
        raise ClusterError(
            f"These credentials may not {what} ({error.reason}); ask for the RBAC that "
            f"`{rights}` prints."
        ) from error
    except NotFound as error:
        raise ClusterError(
            f"{host} answers 404 when asked to {what}; check that it is a Kubernetes API server."
        ) from error
    except Redirected as error:
        raise ClusterError(
            f"{host} redirects when asked to {what} ({error.reason}), which is not followed; check "
            f"that {source} names the API server itself, and no proxy or page to log in."
        ) from error
    except Throttled as error:
        raise ClusterError(
            f"The API server {host} is too busy to {what} ({error.reason}); try again later."
        ) from error
    except RequestFailed as error:
        raise ClusterError(
            f"The API server {host} failed to {what} ({error.reason}); try again later."
        ) from error


def probe_cluster(client: ApiClient) -> ClusterInfo:
    """Learn who the cluster is.

    Raises:
        ClusterError: it cannot be reached or does not let us in.
    """
    notes: list[str] = []
    try:
        said = asked(client, "read /version", lambda: _version(client)).get("gitVersion")
        version = _word(client, said)
    except _VersionForbiddenError:
        version = None
    if version is None:
        notes.append("the Kubernetes version is unknown: /version may not be read or says none")
    if not client.connection.verifies_server:
        notes.append(
            "the server's certificate is not checked (insecure-skip-tls-verify): anybody on the "
            "way could have answered"
        )
    gates = _feature_gates(client)
    if not gates:
        notes.append("the feature gates are unknown: /metrics may not be read or does not tell")
    return ClusterInfo(version, gates, probe_uid(client), tuple(notes))


def _word(client: ApiClient, said: Any) -> str | None:
    """What a server says of itself, if a header can hold it: a word that is no credential."""
    if not isinstance(said, str) or not _WORD.fullmatch(said):
        return None
    return said if client.connection.credentials.clean(said) == said else None


class _VersionForbiddenError(Exception):
    """Some clusters hide /version: worth a note, no reason to stop."""


def _version(client: ApiClient) -> dict[str, Any]:
    try:
        return client.get("/version")
    except Forbidden as error:
        raise _VersionForbiddenError from error


def _feature_gates(client: ApiClient) -> dict[str, bool]:
    gates: dict[str, bool] = {}
    try:
        for number, line in enumerate(client.text_lines("/metrics")):
            match = _GATE.match(line)
            if match is not None:
                name = _word(client, match[1].decode())
                gates |= {} if name is None else {name: match[2] == b"1"}
                if len(gates) > _GATES_MAX:
                    return {}  # no API server's
            elif gates or number > _METRIC_LINES_MAX:
                break  # they stand together, and the rest is megabytes
    except RequestFailed:
        return {}
    return dict(sorted(gates.items()))


def probe_uid(client: ApiClient) -> str | None:
    """The uid of kube-system, which tells clusters apart; None when it may not be seen."""
    try:
        answer = client.get("/api/v1/namespaces/kube-system")
        return _word(client, answer["metadata"]["uid"])
    except (RequestFailed, KeyError, TypeError):
        return None
