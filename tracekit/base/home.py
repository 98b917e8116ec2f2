"""The user's home directory, which one that a container runs as may not have."""

from __future__ import annotations

from pathlib import Path


def below_home(*parts: str) -> Path | None:
    """A place below the home directory; None where this user has none."""
    try:
        return Path.home().joinpath(*parts)
    except RuntimeError:  # neither HOME nor a line in the password database
        return None
