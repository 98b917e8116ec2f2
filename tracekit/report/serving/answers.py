"""What the served page asks: which Jobs there are, the details of one, what happened in a time.

Each answer has a bound, whatever the trace: the page says what is left out, and asks again for a
part of the record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tracekit.answers.findings.diagnosis import Diagnosed
from tracekit.answers.model import Severity
from tracekit.base.errors import UsageError
from tracekit.base.time_input import ALWAYS, TimeRange
from tracekit.report.html.about import About
from tracekit.report.html.data import (
    Drawn,
    overview,
    put_details,
    put_divergences,
    seen_of,
)
from tracekit.report.html.happenings import MAX_AT_ONCE, happenings_within, looked_at, writes_within
from tracekit.report.html.lanes import pod_diffs
from tracekit.report.html.packed import details_of, drawn
from tracekit.report.html.page import meant, shown_in_page
from tracekit.report.html.scope import Key, Scope, scope_of
from tracekit.sql.findings import diagnosis_of
from tracekit.sql.session import Session

#: So many Jobs one page has; those in trouble come first.
MAX_JOBS: Final = 5_000
#: Rows of each kind that one Job's details have.
MAX_ROWS: Final = 3_000
#: What was drawn on so many pages is kept, for the details of their Jobs.
_KEPT: Final = 4
#: Words of a search, and the characters of what is asked.
_WORDS: Final = 8
_CHARS: Final = 300
#: A number of nanoseconds, not longer than 64 bits need.
_DIGITS: Final = re.compile("-?[0-9]{1,19}")

_WANTED: Final = """
{where} AND ($outcome::VARCHAR IS NULL OR outcome = $outcome)
AND len(list_filter(from_json($words, '["VARCHAR"]'), lambda w: NOT contains(
  lower(concat_ws(' ', namespace, job, cronjob, outcome, reason, message, image)), w))) = 0
"""
_FIRST: Final = """
SELECT namespace, job FROM jobs WHERE {wanted}
ORDER BY namespace || '/' || job IN (SELECT unnest($troubled::VARCHAR[])) DESC,
         outcome = 'Failed' DESC, created_at, namespace, job
LIMIT $most
"""
_TOTALS: Final = """
SELECT outcome, count(*) AS jobs, sum(pods)::BIGINT AS pod_count,
       sum(pods_failed)::BIGINT AS pods_failed, sum(retries)::BIGINT AS retries,
       sum(backoff_s) AS backoff_s
FROM jobs WHERE {wanted} GROUP BY outcome ORDER BY outcome
"""


class Question(Struct, frozen=True):
    """The part of the record that a page is about."""

    times: TimeRange = ALWAYS
    namespace: str | None = None
    outcome: str | None = None
    words: tuple[str, ...] = ()


class Answers:
    """A trace that a page asks, judged once. Not for several threads at a time.

    Before it was judged there is a page with all that is seen in the record; afterwards there are
    findings, verdicts, and the answers to what a page asks.
    """

    def __init__(
        self, session: Session, key: str | None, times: TimeRange, namespace: str | None
    ) -> None:
        self._session = session
        self._key = key
        self._all = scope_of(session, key, times, namespace)
        self._diagnosed: Diagnosed | None = None
        self._whole = About(session, self._all, None)
        self._troubled: list[str] = []
        #: By what it is about: since when its times are counted, and what is drawn.
        self._drawn: dict[Scope, tuple[int, Drawn]] = {}

    @property
    def is_judged(self) -> bool:
        """Whether findings and verdicts are there."""
        return self._diagnosed is not None

    def judge(self) -> None:
        """Judge the trace, which takes most of the time; once."""
        if self.is_judged:
            return
        found = diagnosis_of(self._session)
        self._whole = About(self._session, self._all, found)
        named = [
            f"{target.namespace}/{target.name}"
            for finding in self._whole.found
            for target in finding.objects
            if target.kind == "Job" and finding.severity is not Severity.INFO
        ]
        self._troubled = list(dict.fromkeys(named))
        # From here on a page tells of them: everything else that it tells is there.
        _ = self._whole.judged, self._whole.divergent
        self._diagnosed = found

    def page(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """The data of a page, without details."""
        question = _question(asked)
        within = scope_of(
            self._session,
            self._key,
            _narrowed(self._all.times, question.times),
            self._namespace(question.namespace) or self._all.namespace,
        )
        totals = self._rows(_TOTALS, within, question)
        count = sum(row["jobs"] for row in totals)
        scope = within
        whole = (
            self._whole if within == self._all else About(self._session, within, self._diagnosed)
        )
        if question.outcome or question.words or count > MAX_JOBS:
            first = self._rows(_FIRST, within, question, troubled=self._troubled, most=MAX_JOBS)
            scope = replace(within, jobs=frozenset((r["namespace"], r["job"]) for r in first))
        about = About(self._session, scope, self._diagnosed)
        # What was found tells of Jobs that are not here, too.
        about.found, about.divergent, about.judged = whole.found, whole.divergent, whole.judged
        found = self._drawn_of(about)
        put_divergences(about, found)
        data = overview(about, found, self._key)
        data["jobs"] = [drawn(job, {}) for job in found.jobs.values()]
        served = {
            "jobs": count,
            "totals": totals,
            "namespaces": sorted(self._session.objects.namespaces),
            "asked": {name: value for name, value in asked.items() if value},
            "judged": self.is_judged,
        }
        return {**data, "pod_diffs": {}, "problems": about.problems, "served": served}

    def job(self, asked: Mapping[str, str]) -> dict[str, Any] | None:
        """The details of one Job; None: the record has none with this uid."""
        row = self._asked_for(asked.get("uid", ""), self._namespace(asked.get("namespace", "")))
        if row is None or not self._all.holds("Job", row["namespace"], row["job"]):
            return None
        key: Key = (row["namespace"], row["job"])
        uid = row["job_uid"]
        scope = Scope(frozenset([key]), frozenset(), self._all.times)
        about = About(self._session, scope, self._diagnosed)
        about.start_ns = _start_ns(asked, about)
        about.found = self._whole.found
        window = self._seen_before(about, key, uid) or seen_of(about)
        put_details(about, window)
        (found,) = (job for job in window.jobs.values() if job["job_uid"] == uid)
        for name in ("history", "events", "logs", "actions"):
            found[name] = found[name][:MAX_ROWS]
        return details_of(found, pod_diffs(about))

    def happenings(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """What happened in a time, in order; `until` is where an answer ends that is too long."""
        about = self._about(asked)
        times = _question(asked).times
        window = looked_at(about, times)
        troubles = bool(asked.get("troubles"))
        rows, count = happenings_within(about, window, MAX_AT_ONCE, troubles=troubles)
        return {"rows": rows, "count": count, "until": _end(about, window, times)}

    def writes(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """Who wrote what in a time, in order, and how much everybody wrote then."""
        about = self._about(asked)
        times = _question(asked).times
        window = looked_at(about, times)
        actor = asked.get("actor") or None
        rows, count, actors = writes_within(about, window, MAX_AT_ONCE, actor=actor)
        until = _end(about, window, times)
        return {"rows": rows, "count": count, "actors": actors, "until": until}

    def _namespace(self, asked: str | None) -> str | None:
        """The namespace that a page calls so."""
        return asked and meant(asked, self._session.objects.namespaces)

    def _asked_for(self, uid: str, namespace: str | None) -> dict[str, Any] | None:
        """The Job that a page calls so."""
        wanted = "SELECT namespace, job, job_uid FROM jobs WHERE namespace = $namespace"
        rows = self._session.rows(f"{wanted} AND job_uid = $uid", uid=uid, namespace=namespace)
        if not rows and "\\" in uid:
            rows = self._session.rows(wanted, namespace=namespace)
            rows = [row for row in rows if shown_in_page(row["job_uid"] or "") == uid]
        return rows[0] if rows else None

    def _drawn_of(self, about: About) -> Drawn:
        """What is drawn of a part; what was drawn a moment ago is not asked for again."""
        if about.scope not in self._drawn:
            if len(self._drawn) >= _KEPT:
                self._drawn.pop(next(iter(self._drawn)))
            self._drawn[about.scope] = about.start_ns, seen_of(about)
        return self._drawn[about.scope][1]

    def _seen_before(self, about: About, key: Key, uid: str) -> Drawn | None:
        """What was drawn of one Job, its times counted since the same moment."""
        for start_ns, seen in self._drawn.values():
            found = {
                name: {**job}
                for name, job in seen.jobs.items()
                if name[1] == key[0] and name[2] == uid
            }
            if found and start_ns == about.start_ns:
                return Drawn(found, {key: seen.conclusions[key]}, [])
        return None

    def _about(self, asked: Mapping[str, str]) -> About:
        """The whole, counted from where the page's time begins."""
        self._whole.start_ns = _start_ns(asked, self._whole)
        return self._whole

    def _rows(
        self, query: str, scope: Scope, question: Question, **values: Any
    ) -> list[dict[str, Any]]:
        wanted = _WANTED.replace("{where}", scope.where())
        return self._session.rows(
            query.replace("{wanted}", wanted),
            **scope.values,
            outcome=question.outcome,
            words=json.dumps(question.words),
            **values,
        )


def _end(about: About, window: TimeRange, times: TimeRange) -> float | None:
    return None if window == times else about.ms(window.until_ns)


def _question(asked: Mapping[str, str]) -> Question:
    words = asked.get("words", "")
    if len(words) > _CHARS:
        raise UsageError(f"a search has up to {_CHARS} characters: search for less")
    return Question(
        TimeRange(_ns(asked.get("from")), _ns(asked.get("to"))),
        asked.get("namespace") or None,
        asked.get("outcome") or None,
        tuple(words.lower().split()[:_WORDS]),
    )


def _start_ns(asked: Mapping[str, str], about: About) -> int:
    """Since when the page counts its times."""
    start_ns = _ns(asked.get("start"))
    return about.start_ns if start_ns is None else start_ns


def _ns(text: str | None) -> int | None:
    if not text:
        return None
    if not _DIGITS.fullmatch(text) or not -(1 << 63) <= int(text) < 1 << 63:
        raise UsageError(f"{text[:40]!r} is no time in ns since 1970")
    return int(text)


def _narrowed(times: TimeRange, to: TimeRange) -> TimeRange:
    froms = [t for t in (times.from_ns, to.from_ns) if t is not None]
    untils = [t for t in (times.until_ns, to.until_ns) if t is not None]
    return TimeRange(max(froms, default=None), min(untils, default=None))
