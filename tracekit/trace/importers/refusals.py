"""`Status`: what an API server answers in place of objects, as `curl` and watches keep it.

It says nothing of what is there. Upstream: apimachinery, pkg/apis/meta/v1/types.go (Status,
StatusReason).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

#: An answer may come from anybody: a reason that is none of the API's is not repeated.
_REASON = re.compile(r"[A-Z][A-Za-z]{1,40}")
_ASK = "`kubectl get cronjobs,jobs,pods,events -A -o json` prints a file that can be imported"
_TODO = {
    "Forbidden": "who asked may not; `kubectl auth can-i list pods -A` tells whether you may",
    "Unauthorized": "it did not know who asked; `kubectl auth whoami` tells as whom you do",
    "Success": "it says that a request was done",
    "NotFound": "there is nothing under the path that was asked for",
    "Expired": "the revision that was asked for is compacted; a list has the present ones",
    "Gone": "the revision that was asked for is compacted; a list has the present ones",
}  # fmt: skip


class Refusal(msgspec.Struct, frozen=True):
    """An answer without objects."""

    reason: str
    code: int | None

    @property
    def shown(self) -> str:
        """What it says, in the API's words."""
        said = [self.reason, str(self.code) if self.code is not None else ""]
        return ", ".join(filter(None, said)) or "without a reason"

    @property
    def left_out(self) -> str:
        """What is said of one beside others."""
        return f"answers of the API server in place of objects (Status: {self.shown}), left out"

    @property
    def summary(self) -> str:
        """What is said of a file that is nothing else, as the rest of a sentence."""
        why = _TODO.get(self.reason, "ask again")
        return (
            f"is what an API server answered in place of objects (Status: {self.shown}), which "
            f"says nothing of what is there: {why}; {_ASK}"
        )


def refusal_in(obj: Mapping[str, Any]) -> Refusal | None:
    """The answer that an object of the API is, or that a watch ends with; None if it is another."""
    if obj.get("type") == "ERROR" and isinstance(obj.get("object"), dict):
        obj = obj["object"]
    if obj.get("kind") != "Status" or obj.get("apiVersion") != "v1":
        return None
    reason, code = obj.get("reason"), obj.get("code")
    if not isinstance(reason, str) or not _REASON.fullmatch(reason):
        status = obj.get("status")
        reason = status if status in ("Success", "Failure") else ""
    return Refusal(reason, code if code in range(1000) else None)
