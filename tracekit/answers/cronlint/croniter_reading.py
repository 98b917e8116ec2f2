"""The second reader: what croniter makes of a cron text, whatever the text is."""

from __future__ import annotations

import re
from datetime import UTC as DATETIME_UTC
from datetime import datetime, timedelta

from croniter import CroniterBadDateError, croniter
from msgspec import Struct

from tracekit.base.cron import UTC, Zone
from tracekit.base.kube.timestamps import NS_PER_S

_EPOCH = datetime(1970, 1, 1, tzinfo=DATETIME_UTC)
#: croniter builds every value of a range before it looks at the bounds.
_TOO_BIG = re.compile(r"\d{5}")
_CHARACTERS_MAX = 500


class Reading(Struct, frozen=True):
    """What a reader answers: the first activations, or its own words of refusal."""

    next_ns: tuple[int, ...] = ()
    refused: str | None = None


class Question(Struct, frozen=True):
    """What croniter is asked; `day_or` False: a day must fit day of month and day of week."""

    text: str
    at_ns: int
    zone: Zone = UTC
    day_or: bool = True


def croniter_reading(question: Question, count: int) -> Reading:
    """The next `count` activations after an instant, fewer where croniter finds none any more."""
    text = question.text
    if _TOO_BIG.search(text) or len(text) > _CHARACTERS_MAX:
        return Reading(refused="not asked: a number of more than four digits, or too long a text")
    found: list[int] = []
    try:
        at = _EPOCH + timedelta(seconds=question.at_ns // NS_PER_S)
        reader = croniter(text, at.astimezone(question.zone.tzinfo), day_or=question.day_or)
        while len(found) < count:
            found.append(int(reader.get_next(float)) * NS_PER_S)
    except CroniterBadDateError:
        return Reading(tuple(found))
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        return Reading(refused=str(error) or type(error).__name__)
    return Reading(tuple(found))
