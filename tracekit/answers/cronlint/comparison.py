"""One schedule, two readers: whether they agree, and by which differences they do not.

A difference is not guessed from the text: it counts where taking it away (asking croniter for what
Kubernetes reads there) makes the readers agree, and no smaller set of differences does. Only what
Kubernetes refuses is classed by its text, as there is nothing to compare.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from tracekit.answers.cronlint.croniter_reading import Question, Reading, croniter_reading
from tracekit.base.cron import (
    UTC,
    CronSpecError,
    EverySchedule,
    Generation,
    Schedule,
    SpecSchedule,
    Zone,
    activations,
    parse,
)
from tracekit.base.cron.gotext import fields
from tracekit.base.cron.schedule import DAY_S, YEARS_SEARCHED, civil_from_days
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.numbers import whole_number

_FIELDS = ("minutes", "hours", "days", "months", "weekdays")
_LOWEST = (0, 0, 1, 1, 0)
_SIZES = (60, 24, 31, 12, 7)
_DAY, _MONTH, _WEEKDAY = 2, 3, 4
_PREFIX = re.compile(r"(?:CRON_)?TZ=")
#: What both readers take for blanks.
_BLANKS = re.compile(r"[ \t]+")
#: Forms of an item of a list that the readers may understand differently.
_FORMS = (
    ("empty-item", re.compile("")),
    ("big-number", re.compile(r".*\d{5}.*")),
    ("question-mark", re.compile(r"\?(?:/.*)?")),
    ("star-range", re.compile(r"[*?]-.*")),
    ("plus-sign", re.compile(r".*\+.*")),
    ("one-value-range", re.compile(r"\w+-\w+(?:/\d+)?")),
)
_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS = (
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
)  # fmt: skip


class Comparison(Struct, frozen=True):
    """Both readings of a text; no classes where the readers agree or both refuse."""

    kubernetes: Reading
    croniter: Reading
    classes: tuple[str, ...]

    @property
    def agree(self) -> bool:
        """Whether both fire at the same times, or both refuse."""
        return not self.classes


class _Case(Struct, frozen=True):
    """A schedule of Kubernetes and the question to croniter that should mean the same."""

    schedule: SpecSchedule
    question: Question
    cut_years: bool = False


def compare(
    text: str,
    *,
    spec: str,
    generation: Generation,
    zone: Zone,
    at_ns: int,
    count: int,
) -> Comparison:
    """Ask both readers for the `count` activations after an instant.

    Args:
        text: The schedule as its user wrote it; croniter gets it like this, and the zone.
        spec: What Kubernetes hands to its library: with the prefix of `spec.timeZone`.
        generation: The library of the Kubernetes release.
        zone: The zone meant: `spec.timeZone`, else that of the controller process.
        at_ns: Only later times count.
        count: How many activations are compared.
    """
    question = Question(text, at_ns, zone)
    theirs = croniter_reading(question, count)
    try:
        schedule = parse(spec, generation)
    except CronSpecError as error:
        ours = Reading(refused=str(error))
        classes = () if theirs.refused is not None else (_class_of_refused(text),)
        return Comparison(ours, theirs, classes)
    ours = kubernetes_reading(schedule, zone, at_ns, count)
    if not isinstance(schedule, SpecSchedule):
        if isinstance(schedule, EverySchedule) and theirs.refused is not None:
            return Comparison(ours, theirs, ("every",))
        return Comparison(ours, theirs, ("unexplained",))
    if theirs == ours:
        return Comparison(ours, theirs, ())
    if schedule.is_impossible and theirs.refused is not None:
        return Comparison(ours, theirs, ("empty-item",))  # nothing is left to ask croniter for
    return Comparison(ours, theirs, _needed(_Case(schedule, question), generation, count))


def kubernetes_reading(schedule: Schedule, zone: Zone, at_ns: int, count: int) -> Reading:
    """The next activations as the Go library finds them."""
    return Reading(tuple(islice(activations(schedule, at_ns, zone=zone), count)))


_Step = Callable[[_Case], _Case]


def _needed(case: _Case, generation: Generation, count: int) -> tuple[str, ...]:
    """The smallest set of differences (no part of it would do) without which they agree."""
    steps: dict[str, _Step] = {"zone-prefix": _without_prefix, "odd-blanks": _with_plain_blanks}
    for name, form in _FORMS:
        steps[name] = partial(_with_values, form=form, generation=generation)
    steps |= {"day-rule": _with_day_rule, "clock-change": _without_zone, "five-years": _cut}

    def agrees(names: list[str]) -> bool:
        changed = case
        for name in names:
            changed = steps[name](changed)
        return _agree(changed, count)

    needed = list(steps)
    if not agrees(needed):
        return ("unexplained",)
    for name in steps:
        fewer = [other for other in needed if other != name]
        if agrees(fewer):
            needed = fewer
    return tuple(needed)


def _agree(case: _Case, count: int) -> bool:
    question = case.question
    ours = kubernetes_reading(case.schedule, question.zone, question.at_ns, count)
    theirs = croniter_reading(question, count)
    if case.cut_years:
        theirs = replace(theirs, next_ns=_within_years(question, theirs.next_ns))
    return ours == theirs


def _within_years(question: Question, times: tuple[int, ...]) -> tuple[int, ...]:
    kept: list[int] = []
    before_ns = question.at_ns
    for at_ns in times:
        if _year(at_ns, question.zone) > _year(before_ns + NS_PER_S, question.zone) + (
            YEARS_SEARCHED
        ):
            break
        kept.append(at_ns)
        before_ns = at_ns
    return tuple(kept)


def _year(at_ns: int, zone: Zone) -> int:
    at_s = at_ns // NS_PER_S
    return civil_from_days((at_s + zone.offset_s(at_s)) // DAY_S)[0]


def _without_prefix(case: _Case) -> _Case:
    words = fields(case.question.text)
    if not words or not _PREFIX.match(words[0]):
        return case
    zone = case.schedule.zone or case.question.zone
    return replace(case, question=replace(case.question, text=" ".join(words[1:]), zone=zone))


def _with_plain_blanks(case: _Case) -> _Case:
    text = " ".join(fields(case.question.text))
    return replace(case, question=replace(case.question, text=text))


def _with_values(case: _Case, *, form: re.Pattern[str], generation: Generation) -> _Case:
    """Items of the form become the values that Kubernetes reads in them."""
    parts = _BLANKS.split(case.question.text.strip(" \t"))
    if len(parts) != len(_FIELDS):
        return case
    written = []
    for place, part in enumerate(parts):
        items = [
            _values(item, place, generation) if form.fullmatch(item) else item
            for item in part.split(",")
        ]
        written.append(",".join(item for item in items if item or not form.fullmatch("")))
    return replace(case, question=replace(case.question, text=" ".join(written)))


def _values(item: str, place: int, generation: Generation) -> str:
    if not item:
        return item
    parts = ["*"] * len(_FIELDS)
    parts[place] = item
    try:
        read = parse(" ".join(parts), generation)
    except CronSpecError:
        return item
    low = _LOWEST[place]
    bits: int = getattr(read, _FIELDS[place])
    values = [str(value) for value in range(low, low + _SIZES[place]) if bits >> value & 1]
    if item[0].isalnum() and "-" in item and len(values) > 1:
        return item  # a range like any other: both read it alike
    return "*" if len(values) == _SIZES[place] else ",".join(values)


def _with_day_rule(case: _Case) -> _Case:
    schedule = case.schedule
    if schedule.any_day_star:
        return replace(case, question=replace(case.question, day_or=False))
    parts = _BLANKS.split(case.question.text.strip(" \t"))
    full = schedule.days.bit_count() == _SIZES[_DAY] or (
        schedule.weekdays.bit_count() == _SIZES[_WEEKDAY]
    )
    if not full or len(parts) != len(_FIELDS):
        return case
    parts[_DAY] = parts[_WEEKDAY] = "*"
    return replace(case, question=replace(case.question, text=" ".join(parts)))


def _without_zone(case: _Case) -> _Case:
    """Both on a clock that nobody changes, from the same local time."""
    zone, at_ns = case.schedule.zone or case.question.zone, case.question.at_ns
    wall_ns = at_ns + zone.offset_s(at_ns // NS_PER_S) * NS_PER_S
    return replace(
        case,
        schedule=replace(case.schedule, zone=None),
        question=replace(case.question, at_ns=wall_ns, zone=UTC),
    )


def _cut(case: _Case) -> _Case:
    return replace(case, cut_years=True)


def _class_of_refused(text: str) -> str:
    """The class of a text that only croniter takes."""
    parts = text.lower().split()
    if text.startswith("@"):
        return "descriptor-case"
    if len(parts) != len(_FIELDS):
        return "seconds"
    if any(re.match(r"[hr]\b|[hr]\(", part) for part in parts):
        return "random"
    days, weekdays = parts[_DAY].split(","), parts[_WEEKDAY].split(",")
    marks = (
        ("nth-weekday", any("#" in item for item in weekdays)),
        ("nearest-weekday", any(re.fullmatch(r"\d+w|w\d+", item) for item in days)),
        ("last-day", any(re.fullmatch(r"l", item) for item in days)
         or any(re.match(r"l", item) for item in weekdays)),
        ("weekday-7", any(re.search(r"\b7\b(?!/)", item) for item in weekdays)
         and not any("/7" in item for item in weekdays)),
        ("wrapped-range", any(_is_wrapped(item) for part in parts for item in part.split(","))),
    )  # fmt: skip
    return next((name for name, there in marks if there), "unexplained")


def _is_wrapped(item: str) -> bool:
    ends = item.partition("/")[0].split("-")
    if len(ends) != 2:  # noqa: PLR2004 - a range
        return False
    low, high = (_number(end) for end in ends)
    return low is not None and high is not None and low > high


def _number(name: str) -> int | None:
    for lowest, names in ((0, _NAMES), (1, _MONTHS)):
        if name in names:
            return lowest + names.index(name)
    return whole_number(name)
