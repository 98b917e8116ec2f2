"""News to a URL: one document in a POST each, in the format that its reader takes."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

import orjson
import urllib3
from urllib3.exceptions import HTTPError

from tracekit import __version__
from tracekit.base.bounded_http import TooLate, bound
from tracekit.base.errors import UsageError
from tracekit.watch.news import News
from tracekit.watch.outbox import NotSent, Outbox
from tracekit.watch.payloads import Payload

_TIMEOUT_S = 10.0
#: Taken. A redirect is not: a document goes where the user said, and nowhere else.
_TAKEN = range(200, 300)
_SERVER_ERROR = 500
_BUSY = 429


class Webhook(Outbox):
    """Posts news to one URL."""

    what = "post"

    def __init__(self, url: str, payload: Payload = News.document, **pause: float) -> None:
        super().__init__(**pause)
        self._payload = payload
        try:
            parts = urlsplit(url)
            _ = parts.port  # a number, or it raises
        except ValueError:
            # Not the URL itself: its path or a password in it may be a secret.
            raise UsageError("--webhook: this is no URL: write https://HOST/PATH") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError("--webhook takes a URL that begins with http:// or https://")
        if parts.username is not None:
            raise UsageError(
                "--webhook: leave user and password out of the URL; a path that nobody guesses, or "
                "a proxy beside tracekit, keeps others out"
            )
        self._url = url
        self._pool = bound(_pool_for(parts))
        self._shown = f"{parts.scheme}://{parts.netloc}"  # a path may be a secret

    def send(self, news: News) -> None:
        """Post it, once."""
        headers = {"Content-Type": "application/json", "User-Agent": f"tracekit/{__version__}"}
        body = orjson.dumps(self._payload(news))
        try:
            answer = self._pool.request(
                "POST", self._url, body=body, headers=headers, preload_content=False,
                timeout=urllib3.Timeout(total=_TIMEOUT_S), retries=False, redirect=False,
            )  # fmt: skip
        except (HTTPError, OSError, ValueError, TooLate) as error:
            reason = error if isinstance(error, TooLate) else type(error).__name__
            raise NotSent(f"{self._shown} cannot be reached ({reason})") from error
        answer.close()  # what it has to say is nobody's
        if answer.status not in _TAKEN:
            is_final = answer.status < _SERVER_ERROR and answer.status != _BUSY
            raise NotSent(f"{self._shown} answers {answer.status}", is_final=is_final)


def _pool_for(url: SplitResult) -> urllib3.PoolManager:
    """A pool that takes the environment's proxy, as other programs do."""
    proxy = getproxies().get(url.scheme)
    if proxy and not proxy_bypass(url.hostname or ""):
        try:
            return urllib3.ProxyManager(proxy if "//" in proxy else f"http://{proxy}")
        except (HTTPError, ValueError):
            # Not the address itself: a password may stand in it.
            raise UsageError(
                f"--webhook: the environment's proxy ({url.scheme}_proxy) is none that begins with "
                "http:// or https://; name one, or set no_proxy"
            ) from None
    return urllib3.PoolManager()
