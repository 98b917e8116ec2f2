"""What the user says of the rules to judge by, where the trace does not say it or is mistaken."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class AskedRules(Struct, frozen=True):
    """As a command line has them; None: what the trace says or shows."""

    kubernetes_version: str | None = None
    feature_gates: str | None = None
    process_zone: str | None = None
    #: The controller manager's, one word each.
    controller_flags: tuple[str, ...] | None = None
    #: How far the recorder's clock was ahead of the one that is judged on.
    clock_offset_ns: int | None = None
    #: Whether each Job is searched to its bound, also where most contradict the rules.
    search_all: bool = False

    @classmethod
    def of(
        cls,
        kubernetes_version: str | None,
        feature_gates: Mapping[str, bool] | None,
        process_zone: str | None,
        controller_flags: tuple[str, ...] | None = None,
        clock_offset_ns: int | None = None,
        *,
        search_all: bool = False,
    ) -> AskedRules:
        """The same rules for the same gates, in whatever order they are named."""
        gates = (f"{name}={str(on).lower()}" for name, on in sorted((feature_gates or {}).items()))
        named = ",".join(gates) or None
        return cls(
            kubernetes_version, named, process_zone, controller_flags, clock_offset_ns, search_all
        )

    @property
    def era(self) -> tuple[str | None, str | None, str | None, bool]:
        """What an era follows from, beside the trace, and whether all is searched."""
        return self.kubernetes_version, self.feature_gates, self.process_zone, self.search_all
