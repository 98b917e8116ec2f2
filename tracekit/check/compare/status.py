"""Does an observed Job status say what the controller wrote?

Lists of uids are compared as sets: upstream fills them in the random order of its cache. Times that
the controller took from its clock in this sync (`fresh_ns`) must fall into the window in which the
sync can have run, and as close together as its writes: it takes them right before it writes. They
are whole seconds on the wire.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final

import msgspec

from tracekit.base.kube.job_status import FIELDS, UNCOUNTED, Shape
from tracekit.base.kube.timestamps import NS_PER_S, floor_second, format_rfc3339
from tracekit.base.kube.views import Condition, JobStatus
from tracekit.check.compare.fields import FieldDifference

#: Between the first and the last look at the clock in one sync, beside the time in which it wrote;
#: in whole seconds of the wire.
_FRESH_APART_NS = 2 * NS_PER_S

#: The condition that says that a Job will be complete, from when it can be delayed.
_DECIDED = "SuccessCriteriaMet"


class Interval(msgspec.Struct, frozen=True):
    """When a sync ran, as far as the record tells; `slack_ns` for clocks that differ."""

    from_ns: int
    until_ns: int
    slack_ns: int
    writing_ns: int = 0  # from the sync's first write to this one

    def holds(self, second_ns: int) -> bool:
        """Whether a whole second lies in the interval."""
        return (
            floor_second(self.from_ns - self.slack_ns) <= second_ns <= self.until_ns + self.slack_ns
        )


def status_differences(
    expected: JobStatus, observed: JobStatus, *, fresh_ns: int, window: Interval
) -> list[FieldDifference]:
    """Every field of the status that is not as expected."""
    found: list[FieldDifference] = []
    if _plain(expected) != _plain(observed):
        for name, path in PLAIN:
            left, right = getattr(expected, name), getattr(observed, name)
            if left != right:
                found.append(FieldDifference(path, left, right))
    if _sets(expected) != _sets(observed):
        for name, path in SETS:
            left, right = getattr(expected, name), getattr(observed, name)
            if left != right and sorted(left) != sorted(right):
                found.append(FieldDifference(path, sorted(left), sorted(right)))
    for name, path in TIMES:
        left, right = getattr(expected, name), getattr(observed, name)
        if not _time_fits(left, right, fresh_ns, window):
            found.append(FieldDifference(path, format_rfc3339(left), format_rfc3339(right)))
    found += _condition_differences(expected.conditions, observed.conditions, fresh_ns, window)
    return found or _apart(expected, observed, fresh_ns, window.writing_ns)


#: Fields of the view of a status and their paths: those compared as they are, those in which order
#: means nothing, and times.
PLAIN: Final = (
    *(
        (field.name, f"status.{field.path}")
        for field in FIELDS
        if field.shape not in (Shape.TIME, Shape.UIDS)
    ),
    ("tracks_uncounted", f"status.{UNCOUNTED}"),
)
SETS: Final = tuple(
    (field.name, f"status.{field.path}") for field in FIELDS if field.shape is Shape.UIDS
)
TIMES: Final = tuple(
    (field.name, f"status.{field.path}") for field in FIELDS if field.shape is Shape.TIME
)
_TIME_PATHS = frozenset(path for _, path in TIMES)
_plain = attrgetter(*(name for name, _ in PLAIN))
_sets = attrgetter(*(name for name, _ in SETS))
_CONDITION_TIMES = (
    ("last_probe_ns", "lastProbeTime"),
    ("last_transition_ns", "lastTransitionTime"),
)


def _time_fits(expected: int | None, observed: int | None, fresh_ns: int, window: Interval) -> bool:
    if expected == fresh_ns:
        return observed is not None and window.holds(observed)
    return expected == observed


def _apart(
    expected: JobStatus, observed: JobStatus, fresh_ns: int, writing_ns: int
) -> list[FieldDifference]:
    """Times taken in this sync that are much older than the newest of them."""
    fresh: list[tuple[str, Any]] = [
        (path, getattr(observed, name))
        for name, path in TIMES
        if getattr(expected, name) == fresh_ns
    ]
    for position, left in enumerate(expected.conditions):
        if fresh_ns in left:
            right = observed.conditions[position]
            fresh += [
                (f"status.conditions[{position}].{field_name}", getattr(right, name))
                for name, field_name in _CONDITION_TIMES
                if getattr(left, name) == fresh_ns
            ]
    if len(fresh) < 2:  # noqa: PLR2004 - one time is apart from no other
        return []
    # The completion time is taken right after the interim condition's, when a Job is decided to be
    # complete and nothing is written yet; the terminal condition is stamped when it is set.
    decided_ns = {
        at_ns + later_ns
        for c in observed.conditions
        if c.type == _DECIDED and (at_ns := c.last_transition_ns) is not None
        for later_ns in (0, NS_PER_S)
    }
    fresh = [one for one in fresh if not (one[0] in _TIME_PATHS and one[1] in decided_ns)]
    newest_ns = max((at_ns for _, at_ns in fresh), default=0)
    return [
        FieldDifference(path, format_rfc3339(newest_ns), format_rfc3339(at_ns))
        for path, at_ns in fresh
        if newest_ns - at_ns > _FRESH_APART_NS + writing_ns
    ]


def _condition_differences(
    expected: tuple[Condition, ...],
    observed: tuple[Condition, ...],
    fresh_ns: int,
    window: Interval,
) -> list[FieldDifference]:
    if not expected and not observed:
        return []
    if [c.type for c in expected] != [c.type for c in observed]:
        return [
            FieldDifference(
                "status.conditions", [_brief(c) for c in expected], [_brief(c) for c in observed]
            )
        ]
    found: list[FieldDifference] = []
    for position, (left, right) in enumerate(zip(expected, observed, strict=True)):
        if left == right and fresh_ns not in left:
            continue
        path = f"status.conditions[{position}]"
        if left[:4] != right[:4]:
            found += [
                FieldDifference(f"{path}.{name}", getattr(left, name), getattr(right, name))
                for name in ("status", "reason", "message")
                if getattr(left, name) != getattr(right, name)
            ]
        for name, field_name in _CONDITION_TIMES:
            want, have = getattr(left, name), getattr(right, name)
            if not _time_fits(want, have, fresh_ns, window):
                found.append(
                    FieldDifference(
                        f"{path}.{field_name}", format_rfc3339(want), format_rfc3339(have)
                    )
                )
    return found


def _brief(condition: Condition) -> dict[str, Any]:
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
    }
