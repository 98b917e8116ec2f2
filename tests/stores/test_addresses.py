"""URLs of traces, before anything is asked of a store."""

from __future__ import annotations

import pytest

from tracekit.base.errors import TraceFormatError
from tracekit.trace.stores.store import locate


@pytest.mark.parametrize(
    "url",
    ["s3://KEY:planted@bucket/x", "s3://KEY:pla/nted@bucket/x", "gs://u:planted@b/x",
     "https://u:planted@h.example/x", "abfs://u:planted@account/x"],
)  # fmt: skip
def test_no_password_of_a_url_is_printed(url: str) -> None:
    with pytest.raises(TraceFormatError, match="leave user and password out") as refused:
        locate(url)
    assert "planted" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "path"),
    [("http://h.example:80/a@b", "h.example:80/a@b"), ("s3://bucket/a:b@c", "bucket/a:b@c"),
     ("abfs://container@account.dfs.core.windows.net/x:y@z", "container/x:y@z")],
)  # fmt: skip
def test_what_only_looks_like_one_is_a_path(url: str, path: str) -> None:
    assert locate(url).path == path
