"""The files of a configuration, and those that it names: read with bounds, and only plain files.

The `kubernetes` package opens whatever a name leads to and reads it to its end; what stands here in
the place of its readers looks first. A file whose name OpenSSL is given is read here before.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, cast

from kubernetes.config import kube_config
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.incluster_config import InClusterConfigLoader
from kubernetes.config.kube_config import ConfigNode, FileOrData

from tracekit.base.kubeconfig_file import read_kubeconfig
from tracekit.base.plain_files import NoPlainFileError, read_plain_file
from tracekit.record.credentials.withheld import HEADER_CHARS_MAX

_KINDS: Final = ("clusters", "contexts", "users")
_TOKEN_BYTES_MAX: Final = HEADER_CHARS_MAX
#: A choice: the authorities of a Linux distribution take a quarter of one.
_CERTIFICATE_BYTES_MAX: Final = 1 << 20
#: Of PKCS #8 and of OpenSSL's older form (RFC 7468, 11; RFC 1421, 4.6.1.1).
_WITH_PASSPHRASE: Final = (b"-----BEGIN ENCRYPTED PRIVATE KEY-----", b"Proc-Type: 4,ENCRYPTED")


class UnusableFileError(ConfigException):
    """A file that is there and cannot be what it is named as; the message begins with "its"."""


def merged(paths: list[str]) -> ConfigNode:
    """Several kubeconfigs as one: of each name the first, as kubectl has it.

    Raises:
        ConfigException: one of them is none.
        NoPlainFileError: one of them is no file to read whole.
        OSError: one of them cannot be read.
        yaml.YAMLError: one of them is no YAML, or stands for too many values.
    """
    found: dict[str, dict[str, ConfigNode]] = {kind: {} for kind in _KINDS}
    current = None
    files = [str(Path(path).expanduser()) for path in paths]
    for path in filter(os.path.exists, files):
        document = read_kubeconfig(path)
        if not isinstance(document, dict):
            raise ConfigException("it is empty or not a mapping")
        current = current or document.get("current-context")
        for kind in _KINDS:
            for item in document.get(kind) or []:
                if not isinstance(item, dict) or not isinstance(item.get("name"), str):
                    raise ConfigException(f"an entry of its {kind} has no name")
                node = ConfigNode(f"{kind}/{item['name']}", item, path)
                found[kind].setdefault(item["name"], node)
    lists = {kind: list(nodes.values()) for kind, nodes in found.items()}
    return ConfigNode(files[0], {**lists, "current-context": current}, files[0])


class NamedFile(FileOrData):
    """A token, certificate or key: what stands in the kubeconfig, or the name of its file."""

    def __init__(self, obj: Any, file_key_name: str | None, *args: Any, **options: Any) -> None:
        super().__init__(obj, file_key_name, *args, **options)
        self._called = file_key_name or "key"  # without a name: what a plugin gave

    def as_file(self) -> str | None:
        """The name of a file that OpenSSL may be given."""
        name = cast("str | None", super().as_file())
        if name is not None:
            content = read_certificates(name, self._called)
            if any(mark in content for mark in _WITH_PASSPHRASE):
                raise UnusableFileError(
                    f"its {self._called} has a passphrase, and kubectl takes none with one either; "
                    "decrypt it (openssl pkey)"
                )
        return name

    def as_data(self) -> str | None:
        """The text, as the package's own gives it."""
        if not self._data and self._file:
            self._data = read_token(self._file, self._called)
        return cast("str | None", super().as_data())


class PodAccount(InClusterConfigLoader):
    """The service account of the pod that this process runs in; its token is read anew."""

    def _load_config(self) -> None:
        if Path(self._cert_filename).exists():
            read_certificates(self._cert_filename, "ca.crt")
        super()._load_config()

    def _read_token_file(self) -> None:
        read_token(self._token_filename, "token")
        super()._read_token_file()


def read_token(path: str, called: str) -> str:
    """A file with a token.

    Raises:
        UnusableFileError: it is no plain file, or holds no text that can be one.
        OSError: it cannot be read.
    """
    try:
        return read_plain_file(path, bytes_max=_TOKEN_BYTES_MAX).decode()
    except (NoPlainFileError, UnicodeDecodeError) as error:
        what = error if isinstance(error, NoPlainFileError) else "is no text"
        raise UnusableFileError(f"its {called} {what}") from None


def read_certificates(path: str, called: str) -> bytes:
    """A file with certificates, or a key.

    Raises:
        UnusableFileError: it is no plain file, or too large.
        OSError: it cannot be read.
    """
    try:
        return read_plain_file(path, bytes_max=_CERTIFICATE_BYTES_MAX)
    except NoPlainFileError as error:
        raise UnusableFileError(f"its {called} {error}") from None


def install() -> None:
    """Have the package's loader read files this way."""
    setattr(kube_config, "FileOrData", NamedFile)  # noqa: B010 - the name is not exported
