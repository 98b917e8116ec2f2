"""Values that were read, whatever they are, as JSON again.

YAML and other readers know numbers of any size, and readers of JSON go deeper than the fast writer.
"""

from __future__ import annotations

import json
from typing import Any

import orjson


def json_text(value: Any) -> bytes:
    """The shortest text of a value that was read.

    Raises:
        RecursionError: It is nested deeper than anything of the API.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        # An integer beyond 64 bits, half a surrogate pair, more than 254 levels: slower, as exact.
        return json.dumps(value, separators=(",", ":")).encode()
