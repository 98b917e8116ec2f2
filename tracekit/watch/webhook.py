"""News to a URL: one JSON document in a POST each."""

from __future__ import annotations

from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import orjson

from tracekit import __version__
from tracekit.errors import UsageError
from tracekit.watch.news import News
from tracekit.watch.outbox import NotSent, Outbox

_TIMEOUT_S = 10.0
_SERVER_ERROR = 500
_BUSY = 429


class _NoRedirect(HTTPRedirectHandler):
    """A document goes where the user said, and nowhere else."""

    def redirect_request(self, *_: object) -> None:
        return None


class Webhook(Outbox):
    """Posts news to one URL."""

    what = "post"

    def __init__(self, url: str, **pause: float) -> None:
        super().__init__(**pause)
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError("--webhook takes a URL that begins with http:// or https://")
        if parts.username is not None:
            raise UsageError(
                "--webhook: leave user and password out of the URL; a path that nobody guesses, or "
                "a proxy beside tracekit, keeps others out"
            )
        self._url = url
        self._shown = f"{parts.scheme}://{parts.netloc}"  # a path may be a secret

    def send(self, news: News) -> None:
        """Post it, once."""
        headers = {"Content-Type": "application/json", "User-Agent": f"tracekit/{__version__}"}
        body = orjson.dumps(news.document())
        request = Request(self._url, data=body, headers=headers, method="POST")  # noqa: S310 - checked
        try:
            with build_opener(_NoRedirect()).open(request, timeout=_TIMEOUT_S) as answer:
                answer.read(1)
        except HTTPError as error:
            is_final = error.code < _SERVER_ERROR and error.code != _BUSY
            raise NotSent(f"{self._shown} answers {error.code}", is_final=is_final) from error
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or type(error).__name__
            raise NotSent(f"{self._shown} cannot be reached ({reason})") from error
