"""Things that happened, as `timeline` lists them."""

from __future__ import annotations

from msgspec import Struct


class Happening(Struct, frozen=True):
    """One thing that happened."""

    at_ns: int
    #: Kind, namespace and name of the object; empty where it is about none.
    kind: str
    namespace: str
    name: str
    what: str
    #: User, controller or field manager; None: the record does not tell, or nobody did it.
    who: str | None = None
    #: Whether somebody who looks for trouble wants to see it.
    is_trouble: bool = False
    #: The Job and the CronJob that it belongs to; empty where to none.
    job: str = ""
    cronjob: str = ""
