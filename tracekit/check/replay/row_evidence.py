"""What a row of a window tells of who wrote it, looked up when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from tracekit.base.kube.views import OwnerRef
from tracekit.check.replay.history import Manager

if TYPE_CHECKING:
    from tracekit.check.replay.feed import Rows


class RowEvidence(msgspec.Struct, eq=False, gc=False):
    """Looks things up in the row when they are asked for."""

    window: Rows
    row: int

    def managers(self) -> tuple[Manager, ...]:
        """The managedFields entries."""
        entries: list[Mapping[str, Any]] | None = self.window.cell("managers", self.row)
        return tuple(
            Manager(
                entry["manager"] or "",
                entry["operation"] or "",
                entry["subresource"] or "",
                entry["time_ns"],
            )
            for entry in entries or ()
        )

    def has_others_status(self) -> bool:
        """Whether somebody else than a controller manager has set fields of a Job's status."""
        return self.row in self.window.statuses_of_others

    def pod_spec(self) -> Mapping[str, Any]:
        """The decoded spec of the pod, without its node name."""
        return self.window.pod_specs.at(self.row)

    def generate_name(self) -> str:
        """metadata.generateName."""
        return self.window.generate_name(self.row)

    def owners(self) -> tuple[OwnerRef, ...]:
        """Every owner reference."""
        return self.window.owners(self.row)
