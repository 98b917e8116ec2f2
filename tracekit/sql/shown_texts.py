"""What kubectl printed for people, out of a trace's rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from tracekit.answers.trace_model import Seen
from tracekit.base.kube.printed.model import Shown, ShownEvent

if TYPE_CHECKING:
    from tracekit.sql.session import Session

_SHOWN: Final = """
SELECT recv_ns, verb, raw FROM internal._rows
WHERE type = 'CALL' AND derived_from = 'kubectl-text' ORDER BY seq
"""


def shown_in(session: Session) -> Iterator[Seen]:
    """What text for people shows; a row that says something else is passed over."""
    for row in session.rows(_SHOWN):
        kind: type[Shown | ShownEvent] = ShownEvent if row["verb"] == "event" else Shown
        try:
            yield Seen(row["recv_ns"] or 0, msgspec.json.decode(row["raw"] or b"", type=kind))
        except msgspec.DecodeError:
            continue
