"""What stands in a kubeconfig has the types that kubectl reads, or a sentence says where not.

The `kubernetes` package takes a document as it is and fails wherever a text is no mapping.

Upstream: k8s.io/client-go/tools/clientcmd/api/v1/types.go
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct, field


class ShapeError(Exception):
    """A value is of another type; the message has the place and no text of the document."""


class _Variable(Struct):
    name: str
    value: str


class _Extension(Struct):
    name: str


class _Exec(Struct):
    command: str
    args: list[str] | None = None
    env: list[_Variable] | None = None
    api_version: str | None = field(default=None, name="apiVersion")
    interactive_mode: str | None = field(default=None, name="interactiveMode")
    provides_cluster: bool | None = field(default=None, name="provideClusterInfo")


class _AuthProvider(Struct):
    name: str
    config: dict[str, Any] | None = None


class _User(Struct):
    token: str | None = None
    token_file: str | None = field(default=None, name="tokenFile")
    username: str | None = None
    password: str | None = None
    certificate: str | None = field(default=None, name="client-certificate")
    certificate_data: str | None = field(default=None, name="client-certificate-data")
    key: str | None = field(default=None, name="client-key")
    key_data: str | None = field(default=None, name="client-key-data")
    plugin: _Exec | None = field(default=None, name="exec")
    provider: _AuthProvider | None = field(default=None, name="auth-provider")
    groups: list[str] | None = field(default=None, name="as-groups")
    extra: dict[str, list[str]] | None = field(default=None, name="as-user-extra")


class _Cluster(Struct):
    server: str | None = None
    proxy: str | None = field(default=None, name="proxy-url")
    authority: str | None = field(default=None, name="certificate-authority")
    authority_data: str | None = field(default=None, name="certificate-authority-data")
    server_name: str | None = field(default=None, name="tls-server-name")
    extensions: list[_Extension] | None = None


class _NamedUser(Struct):
    user: _User | None = None


class _NamedCluster(Struct):
    cluster: _Cluster | None = None


class _Entries(Struct):
    clusters: list[_NamedCluster]
    users: list[_NamedUser]


def check(entries: dict[str, Any]) -> None:
    """Refuse clusters and users with a value of a type that theirs never have.

    Raises:
        ShapeError: there is one.
    """
    try:
        found = msgspec.convert(entries, _Entries)
    except msgspec.ValidationError as error:
        raise ShapeError(str(error).replace("`", "").replace(" - at $.", " at ")) from None
    names = (named.cluster.server_name for named in found.clusters if named.cluster is not None)
    if any(name is not None and not name.isprintable() for name in names):
        raise ShapeError("a tls-server-name has characters that no name of a server has")
