"""What the data of a report's page says, packed or plain."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any

#: The element with the data; its type, and its text.
DATA = re.compile(r'<script id="data" type="(.*?)">(.*?)</script>', re.DOTALL)


def data_of(page: str) -> Any:
    """The data of a page, as the page's script takes it apart."""
    found = DATA.search(page)
    assert found is not None
    kind, text = found.groups()
    if kind == "application/gzip":
        text = gzip.decompress(base64.b64decode(text)).decode()
    return json.loads(text)
