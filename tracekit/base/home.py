"""The user's own folders, below a home directory that one a container runs as may not have."""

from __future__ import annotations

import os
from pathlib import Path


def below_home(*parts: str) -> Path | None:
    """A place below the home directory; None where this user has none."""
    try:
        home = Path.home()
    except RuntimeError:  # neither HOME nor a line in the password database
        return None
    return home.joinpath(*parts) if home.is_absolute() else None


def own_folder(variable: str, *parts: str) -> Path | None:
    """Tracekit's folder of a kind that the XDG base directories have, by the kind's variable.

    `parts`: where that kind lies below the home directory. None for a user without one who sets no
    variable. A variable with a relative path counts as not set, as the specification of these
    directories has it: it would be another folder, and somebody else's, in each working directory.
    """
    named = Path(os.environ.get(variable, ""))
    folder = named if named.is_absolute() else below_home(*parts)
    return folder / "tracekit" if folder else None
