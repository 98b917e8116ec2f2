"""A kubeconfig file as a document: a plain file of bounded size, YAML of bounded values.

A file that people are sent, or find in an archive: the credentials in it are theirs, its shape is
anybody's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tracekit.base.plain_files import read_plain_file
from tracekit.base.plain_yaml import load

#: A choice: some four thousand clusters with their certificates.
_BYTES_MAX: Final = 32 << 20
_ITEMS_MAX: Final = 500_000
_VALUES_MAX: Final = 1_000_000


def read_kubeconfig(path: str | Path) -> Any:
    """What the file holds.

    Raises:
        NoPlainFileError: it is a pipe, device or folder, or too large.
        OSError: it cannot be read.
        yaml.YAMLError: it is no YAML, or stands for too many values.
    """
    text = read_plain_file(path, bytes_max=_BYTES_MAX)
    return load(text, items_max=_ITEMS_MAX, values_max=_VALUES_MAX)
