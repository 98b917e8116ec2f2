"""What a page tells beside its Jobs: what happened, in order, and who changed what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import nsmallest
from typing import Any

from tracekit.answers.happening import Happening
from tracekit.base.kube.field_changes import shown
from tracekit.base.time_input import TimeRange
from tracekit.report.html.about import About
from tracekit.report.html.page import meant
from tracekit.sql.edits import Edit, edits_of
from tracekit.sql.timeline import timeline_of

#: Of records with more rows a file has neither: to tell who wrote, every revision is compared.
MAX_ROWS = 10_000
#: Of each that one file holds, and one answer of a server.
MAX_IN_FILE = 20_000
MAX_AT_ONCE = 1_000
#: Rows of the record that one answer of a server looks at.
MAX_LOOKED_AT = 5_000
#: Of one write.
_FIELDS = 12
_VALUE_CHARS = 120

Rows = list[list[Any]]


def happenings(about: About) -> Rows | None:
    """All that happened, for a file; None where it has no room for it."""
    if _is_too_large(about):
        return None
    return happenings_within(about, about.scope.times, MAX_IN_FILE)[0]


def writes(about: About) -> Rows | None:
    """All that was written, for a file; None where it has no room for it."""
    if _is_too_large(about):
        return None
    return writes_within(about, about.scope.times, MAX_IN_FILE)[0]


def looked_at(about: About, times: TimeRange) -> TimeRange:
    """So much of a time as one answer looks at, from its beginning."""
    rows = about.session.rows(
        "SELECT recv_ns FROM internal._states WHERE ($from_ns::BIGINT IS NULL "
        "OR recv_ns >= $from_ns) AND ($until_ns::BIGINT IS NULL OR recv_ns <= $until_ns) "
        "AND ($namespace::VARCHAR IS NULL OR namespace = $namespace) "
        "ORDER BY recv_ns LIMIT 1 OFFSET $most",
        from_ns=times.from_ns,
        until_ns=times.until_ns,
        namespace=_space(about),
        most=MAX_LOOKED_AT,
    )
    return TimeRange(times.from_ns, rows[0]["recv_ns"]) if rows else times


def happenings_within(
    about: About, times: TimeRange, most: int, *, troubles: bool = False
) -> tuple[Rows, int]:
    """What happened in a time, the first so many, and how much there is."""
    found = [
        happening
        for happening in timeline_of(about.session, times, namespace=_space(about))
        if _is_of(happening, about) and (happening.is_trouble or not troubles)
    ]
    first = nsmallest(most, found, key=lambda h: (h.at_ns, h.kind, h.namespace, h.name))
    return [_happening_row(happening, about) for happening in first], len(found)


def writes_within(
    about: About, times: TimeRange, most: int, *, actor: str | None = None
) -> tuple[Rows, int, Rows]:
    """Who wrote what in a time, the first so many; how much there is; how much of whom."""
    pods = None
    if about.scope.jobs is not None:
        pods = {
            (row["namespace"], row["pod"])
            for row in about.rows("SELECT namespace, pod FROM attempts WHERE {where}")
        }
    found = [
        edit
        for edit in edits_of(about.session, namespace=_space(about), times=times)
        if edit.at_ns is not None and times.holds(edit.at_ns) and _is_written(edit, about, pods)
    ]
    actors = Counter(edit.actor or "" for edit in found)
    if actor is not None:
        named = meant(actor, actors)
        found = [edit for edit in found if edit.actor == named]
    first = nsmallest(most, found, key=lambda e: (e.at_ns or 0, e.resource_version or 0))
    rows = [_write_row(edit, about) for edit in first]
    return rows, len(found), [list(each) for each in actors.most_common()]


def _is_too_large(about: About) -> bool:
    (row,) = about.session.rows("SELECT count(*) AS n FROM internal._rows")
    return int(row["n"]) > MAX_ROWS


def _space(about: About) -> str | None:
    """The one namespace that is asked about, if it is one."""
    keys: Iterable[Sequence[str]] = [*(about.scope.jobs or ()), *(about.scope.cronjobs or ())]
    spaces = {key[0] for key in keys}
    return spaces.pop() if len(spaces) == 1 else about.scope.namespace


def _is_of(happening: Happening, about: About) -> bool:
    jobs, cronjobs = about.scope.jobs, about.scope.cronjobs
    if happening.job and jobs is not None:
        return (happening.namespace, happening.job) in jobs
    if happening.cronjob and cronjobs is not None:
        return (happening.namespace, happening.cronjob) in cronjobs
    return True


def _is_written(edit: Edit, about: About, pods: set[tuple[str, str]] | None) -> bool:
    if edit.kind == "Pod":
        return pods is None or (edit.namespace, edit.name) in pods
    return about.scope.holds(edit.kind, edit.namespace, edit.name)


def _happening_row(happening: Happening, about: About) -> list[Any]:
    return [
        about.ms(happening.at_ns), happening.kind, happening.namespace, happening.name,
        happening.what, happening.who, happening.is_trouble, happening.job, happening.cronjob,
    ]  # fmt: skip


def _write_row(edit: Edit, about: About) -> list[Any]:
    fields = [
        [f.path, shown(f.old, _VALUE_CHARS), shown(f.new, _VALUE_CHARS)]
        for f in edit.fields[:_FIELDS]
    ]
    return [
        about.ms(edit.at_ns), edit.kind, edit.namespace, edit.name, edit.resource_version,
        edit.verb, edit.actor, edit.evidence, fields, max(0, len(edit.fields) - _FIELDS),
        edit.code, edit.message,
    ]  # fmt: skip
