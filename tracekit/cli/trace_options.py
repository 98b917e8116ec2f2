"""Options that describe the cluster of a trace, as several verbs take them."""

from __future__ import annotations

import shlex

from tracekit.eras.texts import parse_feature_gates, parse_version
from tracekit.errors import UsageError

__all__ = ["parse_feature_gates", "parse_flags", "parse_version"]


def parse_flags(text: str | None) -> tuple[str, ...]:
    """A command line as a shell would split it."""
    try:
        return tuple(shlex.split(text or ""))
    except ValueError as error:
        raise UsageError(
            f"the controller flags cannot be split into words ({error}): check the quotes"
        ) from error
