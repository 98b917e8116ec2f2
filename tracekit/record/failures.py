"""What can go wrong between us and an API server, sorted by what the watcher does about it.

These never reach a user as they are: the watcher answers them (back off, relist, reload), and the
start-up probe turns them into `ClusterError` sentences.
"""

from __future__ import annotations


class RequestFailed(Exception):  # noqa: N818 (a failure to answer, not an error to report)
    """A request or a stream ended in another way than it should."""

    def __init__(self, reason: str, *, status: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        #: HTTP status, or the code of an ERROR frame; None when there was no answer.
        self.status = status
        #: How long the server asks us to wait, if it does.
        self.retry_after_s: float | None = None


class ConnectionFailed(RequestFailed):
    """No answer, or an answer that stopped: refused, reset, timed out, cut in a line."""


class TlsFailed(ConnectionFailed):
    """The server's certificate or ours was not accepted."""


class StreamIdle(ConnectionFailed):
    """Not a byte for longer than bookmarks are apart: perhaps half open, so connect anew."""


class BadFrame(RequestFailed):
    """A complete line that is no watch event; the connection cannot be trusted any further."""

    def __init__(self, reason: str, *, line: bytes = b"") -> None:
        """`line` is what was sent: who shows the start of it takes the credentials out first."""
        super().__init__(reason)
        self.line = line


class Gone(RequestFailed):
    """410: the server no longer has the revision that was asked for."""


class Unauthorized(RequestFailed):
    """401: the credentials have expired or were never good."""


class CredentialsFailed(Unauthorized):
    """There is nothing to log in with: a token that no header can hold, a plugin that fails."""


class Forbidden(RequestFailed):
    """403: we may not see this."""


class NotFound(RequestFailed):
    """404: the server has no such resource."""


class Unsupported(RequestFailed):
    """400 or 422: the server does not know an option of the request."""


class Redirected(RequestFailed):
    """3xx: the answer is elsewhere, and nothing is followed there: it would be sent credentials."""


class Throttled(RequestFailed):
    """429 or 503: the server asks us to wait."""

    def __init__(self, reason: str, *, status: int, retry_after_s: float | None) -> None:
        super().__init__(reason, status=status)
        self.retry_after_s = retry_after_s


class ServerFailed(RequestFailed):
    """Any other 5xx."""


_BY_STATUS: dict[int, type[RequestFailed]] = {
    400: Unsupported,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: Unsupported,
    410: Gone,
    422: Unsupported,
}
_THROTTLING = frozenset({429, 503})
_REDIRECTING = 3


def failure(status: int, reason: str, retry_after_s: float | None = None) -> RequestFailed:
    """Build the failure that a status code stands for."""
    if status in _THROTTLING:
        return Throttled(reason, status=status, retry_after_s=retry_after_s)
    other = Redirected if status // 100 == _REDIRECTING else ServerFailed
    return _BY_STATUS.get(status, other)(reason, status=status)
