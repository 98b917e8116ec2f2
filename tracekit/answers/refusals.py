"""Why the API server refused a creation: by its own message, as Events and audit logs have it."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Refusal(Enum):
    """What stood against a creation."""

    NAMESPACE_TERMINATING = "its namespace is being terminated"
    QUOTA = "exceeded quota"
    NO_SERVICE_ACCOUNT = "its ServiceAccount is missing"
    POD_SECURITY = "the namespace's Pod Security level forbids it"
    WEBHOOK_UNREACHABLE = "an admission webhook cannot be called"
    WEBHOOK_DENIED = "an admission webhook denied it"
    POLICY = "an admission policy denied it"
    NO_RIGHT = "its controller has no right to"
    INVALID = "the object is not valid"
    OTHER = "the API server refuses it"


#: Words of the API server's messages, looked for in this order.
_WORDS: Final = (
    (Refusal.NAMESPACE_TERMINATING, ("because it is being terminated",)),
    (Refusal.QUOTA, ("exceeded quota", "failed quota", "limited to")),
    (Refusal.NO_SERVICE_ACCOUNT, ("error looking up service account",)),
    (Refusal.POD_SECURITY, ("violates PodSecurity",)),
    (Refusal.WEBHOOK_UNREACHABLE, ("failed calling webhook",)),
    (Refusal.WEBHOOK_DENIED, ("admission webhook",)),
    (Refusal.POLICY, ("ValidatingAdmissionPolicy",)),
    (Refusal.NO_RIGHT, ("cannot create resource",)),
    (Refusal.INVALID, ("is invalid",)),
)


def refusal_of(message: str) -> Refusal:
    """What a message says; `OTHER` where it is none of the known ones."""
    for refusal, words in _WORDS:
        if any(word in message for word in words):
            return refusal
    return Refusal.OTHER
