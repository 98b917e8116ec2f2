"""What became of each time at which a CronJob was due: started, skipped, missed, and by which rule.

The schedules in force come from the recorded revisions of the CronJob; a Job belongs to the tick
that its annotation names (1.28 and later) or its name ends with (minutes since 1970, seconds under
the polling controller). What was not started is explained by the first of these that holds:
suspended, inside a gap, the Job's name taken, Forbid with a Job still running, too late for
startingDeadlineSeconds, no leader, the controller gave up (Event FailedNeedsStart), a later tick
started instead, no timer since a name was taken by somebody else's Job (from 1.37 on).
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from tracekit.eras.cronjob import Controller, CronJobEra, Exists
from tracekit.eras.era import NEWEST, Era
from tracekit.eras.texts import parse_process_zone
from tracekit.eras.version import KubeVersion
from tracekit.errors import TracekitError
from tracekit.kube.cronjob_views import CronJobStatus, CronJobView, cron_spec_from_raw
from tracekit.kube.timestamps import NS_PER_S, parse_rfc3339
from tracekit.replay.cron_runner import CronRunner

TICK_SCHEMA = pa.schema(
    [
        ("trace", pa.string()),
        ("namespace", pa.string()),
        ("cronjob", pa.string()),
        ("cronjob_uid", pa.string()),
        ("due_ns", pa.int64()),
        ("outcome", pa.string()),
        ("policy", pa.string()),
        ("job", pa.string()),
        ("started_ns", pa.int64()),
        ("schedule", pa.string()),
        ("why", pa.string()),
    ]
)
SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
#: The views that the ticks are made from.
TICKS_READ = "leaders, internal._states"
#: A tick so close to the end may still have been started afterwards (the polling controller looks
#: every 10 s, the queued one starts at once).
END_SLACK_NS = 15 * NS_PER_S
#: Nobody reads more ticks of one CronJob; a schedule of `@every 1s` over months would not end.
MAX_TICKS = 200_000
_MINUTE_NS = 60 * NS_PER_S
#: Numbers at the end of a Job's name above this are seconds, below it minutes.
_SECONDS_FROM = 1_000_000_000

_CRONJOBS = """
SELECT seq, recv_ns, type, namespace, name, uid, created_ns, last_schedule_ns, spec
FROM internal._states WHERE trace = $trace AND stream = 'cronjobs' ORDER BY _order, seq
"""
_JOBS = """
SELECT namespace, cronjob, owner_uid, name, any_value(uid) AS uid,
       max(annotations ->> $annotation) AS scheduled, min(created_ns) AS created_ns,
       min(coalesce(completion_ns, finished_condition(conditions).last_transition_ns)) FILTER (
         finished_condition(conditions) IS NOT NULL) AS finished_ns,
       max(recv_ns) FILTER (type = 'DELETED') AS gone_ns
FROM internal._states WHERE trace = $trace AND stream = 'jobs' AND cronjob IS NOT NULL
GROUP BY namespace, cronjob, owner_uid, name, uid
"""
_OTHERS = """
SELECT namespace, name, min(created_ns) AS created_ns,
       max(recv_ns) FILTER (type = 'DELETED') AS gone_ns
FROM internal._states
WHERE trace = $trace AND stream = 'jobs' AND cronjob IS NULL AND regexp_matches(name, '-[0-9]+$')
GROUP BY namespace, name, uid
"""
_BLIND = """
SELECT coalesce(gap_from_ns, 0) AS from_ns, coalesce(gap_until_ns, 1 << 62) AS until_ns
FROM internal._rows WHERE trace = $trace AND type = 'GAP' AND stream IN ('jobs', 'cronjobs')
"""
_LEADERLESS = """
SELECT epoch_ns(from_at) - (without_leader_s * 1e9)::BIGINT AS from_ns,
       epoch_ns(from_at) AS until_ns
FROM leaders WHERE trace = $trace AND lease = 'kube-controller-manager' AND without_leader_s > 0
"""
# Repetitions count up in one Event: all of its states tell how long it went on.
_GAVE_UP = """
SELECT namespace, cronjob, min(first_ns) AS from_ns, max(last_ns) AS until_ns
FROM internal._states
WHERE trace = $trace AND stream = 'events' AND reason = 'FailedNeedsStart' AND cronjob IS NOT NULL
GROUP BY namespace, cronjob, uid
"""


class _Fate(NamedTuple):
    """What became of a tick, by which rule, and why in words."""

    outcome: str
    policy: str | None
    why: str


@dataclass(frozen=True, slots=True)
class _Rule:
    """What a CronJob's spec said from one revision on."""

    from_ns: int
    cron_job: CronJobView
    text: str
    policy: str
    suspended: bool
    deadline_ns: int | None


@dataclass(frozen=True, slots=True)
class _Started:
    """One Job of a CronJob."""

    name: str
    created_ns: int
    finished_ns: int | None
    gone_ns: int | None
    due_ns: int | None
    due_minute: int | None

    def running_at(self, at_ns: int) -> bool:
        """Whether the Job was unfinished then, as far as the record tells."""
        ends = [ns for ns in (self.finished_ns, self.gone_ns) if ns is not None]
        return self.created_ns <= at_ns < min(ends, default=1 << 62)


@dataclass(frozen=True, slots=True)
class _Surroundings:
    end_ns: int
    gaps: Sequence[tuple[int, int]]
    leaderless: Sequence[tuple[int, int]]
    gave_up: Mapping[tuple[str, str], Sequence[tuple[int, int]]]
    #: When a Job of no CronJob was there, by namespace and name.
    others: Mapping[tuple[str, str], tuple[int, int]]


def ticks_of(
    connection: duckdb.DuckDBPyConnection,
    trace: str,
    kubernetes_version: str | None,
    process_zone: str,
) -> pa.Table:
    """The ticks of every CronJob of the trace, by the rules of that version in that zone."""
    cursor = connection.cursor()
    rows = _rows(cursor, _CRONJOBS, trace=trace)
    if not rows:
        return TICK_SCHEMA.empty_table()
    runner = CronRunner(_era(kubernetes_version), parse_process_zone(process_zone))
    around = _surroundings(cursor, trace)
    jobs: defaultdict[tuple[str, str], list[_Started]] = defaultdict(list)
    for row in _rows(cursor, _JOBS, trace=trace, annotation=f'$."{SCHEDULED_AT}"'):
        jobs[row["namespace"], row["owner_uid"]].append(_started(row))
    by_uid: defaultdict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_uid[row["namespace"], row["name"], row["uid"]].append(row)
    found: list[dict[str, Any]] = []
    for (namespace, name, uid), revisions in by_uid.items():
        cron = _CronJob(revisions, jobs[namespace, uid], around, runner)
        where = {"trace": trace, "namespace": namespace, "cronjob": name, "cronjob_uid": uid}
        found += [{**where, **tick} for tick in cron.ticks()]
    found.sort(key=lambda tick: (tick["due_ns"], tick["namespace"] or "", tick["cronjob"] or ""))
    return pa.Table.from_pylist(found, TICK_SCHEMA)


def _rows(cursor: Any, query: str, **values: str) -> list[dict[str, Any]]:
    cursor.execute(query, values)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _era(version: str | None) -> CronJobEra:
    """The rules of the recorded version, of the newest known one where that cannot be told."""
    try:
        return CronJobEra.of(Era.resolve(KubeVersion.parse(version) if version else NEWEST))
    except (TracekitError, ValueError):
        return CronJobEra.of(Era.resolve(NEWEST))


def _surroundings(cursor: Any, trace: str) -> _Surroundings:
    end = cursor.execute(
        "SELECT max(recv_ns) FROM internal._rows WHERE trace = ?", [trace]
    ).fetchone()[0]
    gaps = [(r["from_ns"], r["until_ns"]) for r in _rows(cursor, _BLIND, trace=trace)]
    pauses = [(r["from_ns"], r["until_ns"]) for r in _rows(cursor, _LEADERLESS, trace=trace)]
    gave_up: defaultdict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for row in _rows(cursor, _GAVE_UP, trace=trace):
        gave_up[row["namespace"], row["cronjob"]].append((row["from_ns"], row["until_ns"]))
    others = {
        (row["namespace"], row["name"]): (row["created_ns"] or 0, row["gone_ns"] or 1 << 62)
        for row in _rows(cursor, _OTHERS, trace=trace)
    }
    return _Surroundings(end or 0, gaps, pauses, gave_up, others)


def _started(row: dict[str, Any]) -> _Started:
    due_ns = parse_rfc3339(row["scheduled"]) if row["scheduled"] else None
    minute = None
    suffix = (row["name"] or "").rpartition("-")[2]
    if due_ns is None and suffix.isascii() and suffix.isdigit() and len(suffix) < 12:  # noqa: PLR2004
        number = int(suffix)
        if number >= _SECONDS_FROM:
            due_ns = number * NS_PER_S
        else:
            minute = number
    return _Started(
        row["name"], row["created_ns"] or 0, row["finished_ns"], row["gone_ns"], due_ns, minute
    )


class _CronJob:
    def __init__(
        self,
        revisions: Sequence[dict[str, Any]],
        jobs: Sequence[_Started],
        around: _Surroundings,
        runner: CronRunner,
    ) -> None:
        self.revisions = revisions
        self.runner = runner
        self.era = runner.era
        self.key = (revisions[0]["namespace"], revisions[0]["name"])
        #: Somebody else's Job that stood under a wanted name, since when no timer is armed.
        self.stopped_by: str | None = None
        self.jobs = sorted(jobs, key=lambda job: job.created_ns)
        self.around = around
        self.gave_up = around.gave_up.get(self.key, ())
        self.rules = [_rule(row) for row in revisions if row["type"] != "DELETED"]
        self.by_due = {job.due_ns: job for job in self.jobs if job.due_ns is not None}
        self.by_minute = {job.due_minute: job for job in self.jobs if job.due_minute is not None}

    def ticks(self) -> Iterator[dict[str, Any]]:
        """Every due time while the CronJob was seen, with what became of it."""
        due = [(at_ns, rule) for at_ns, rule in self._due()]
        matched = [self._job_for(at_ns, due, place) for place, (at_ns, _) in enumerate(due)]
        # For each tick the next Job that was started for a later one.
        laters: list[_Started | None] = [None] * len(due)
        later: _Started | None = None
        for place in range(len(due) - 1, -1, -1):
            laters[place] = later
            later = matched[place] or later
        for (at_ns, rule), job, next_job in zip(due, matched, laters, strict=True):
            if job is not None and job.created_ns >= at_ns:
                fate = self._started(at_ns, rule, job)
                self.stopped_by = None
            else:
                fate = self._not_started(at_ns, rule, next_job)
            yield {
                "due_ns": at_ns,
                "outcome": fate.outcome,
                "policy": fate.policy,
                "job": job.name if job and fate.outcome == "started" else None,
                "started_ns": job.created_ns if job and fate.outcome == "started" else None,
                "schedule": rule.text,
                "why": fate.why,
            }

    def _due(self) -> Iterator[tuple[int, _Rule]]:
        if not self.rules:
            return
        first, last = self.revisions[0], self.revisions[-1]
        until_ns = last["recv_ns"] if last["type"] == "DELETED" else self.around.end_ns
        seen_ns = first["recv_ns"] if first["type"] == "LIST" else 0
        at_ns = first["last_schedule_ns"] or first["created_ns"] or first["recv_ns"]
        starts = [rule.from_ns for rule in self.rules]
        for _ in range(MAX_TICKS):
            place = max(0, bisect_right(starts, at_ns) - 1)
            rule = self.rules[place]
            upcoming = self.runner.next_slot_ns(rule.cron_job, at_ns)
            changed_ns = next((r.from_ns for r in self.rules[place:] if r.text != rule.text), None)
            if changed_ns is not None and (upcoming is None or upcoming >= changed_ns):
                at_ns = max(changed_ns, at_ns + 1)
                continue
            if upcoming is None or upcoming > until_ns:
                return
            at_ns = upcoming
            if at_ns >= seen_ns:
                yield at_ns, self.rules[max(0, bisect_right(starts, at_ns) - 1)]

    def _job_for(self, at_ns: int, due: Sequence[tuple[int, _Rule]], place: int) -> _Started | None:
        job = self.by_due.get(at_ns)
        if job is not None:
            return job
        minute = at_ns // _MINUTE_NS
        job = self.by_minute.get(minute)
        if job is None:
            return None
        # A schedule finer than minutes: the name fits several ticks, the last one before it counts.
        following = due[place + 1][0] if place + 1 < len(due) else None
        if (
            following is not None
            and following // _MINUTE_NS == minute
            and following <= job.created_ns + NS_PER_S
        ):
            return None
        return job

    def _started(self, at_ns: int, rule: _Rule, job: _Started) -> _Fate:
        delay_s = (job.created_ns - at_ns) / NS_PER_S
        replaced = [
            other.name
            for other in self.jobs
            if other is not job and other.running_at(at_ns - 1) and other.gone_ns is not None
            and abs(other.gone_ns - job.created_ns) < END_SLACK_NS
        ]  # fmt: skip
        why = f"Job {job.name} was created {delay_s:.0f} s after it was due"
        if rule.policy == "Replace" and replaced:
            why += f", in place of {', '.join(replaced)}, which still ran"
        return _Fate("started", rule.policy, why)

    def _not_started(self, at_ns: int, rule: _Rule, later: _Started | None) -> _Fate:
        if rule.suspended:
            return _Fate("suspended", "suspend", "spec.suspend was true")
        if _inside(self.around.gaps, at_ns, before_ns=END_SLACK_NS) is not None:
            return _Fate("unknown", "gap", "the recorder could not see Jobs or CronJobs then")
        taken = self._name_taken(at_ns)
        if taken is not None:
            return taken
        running = [job.name for job in self.jobs if job.running_at(at_ns)]
        if rule.policy == "Forbid" and running:
            why = f"{', '.join(running)} still ran, and concurrencyPolicy is Forbid"
            return _Fate("skipped", "Forbid", why)
        return self._missed(at_ns, rule, later)

    def _missed(self, at_ns: int, rule: _Rule, later: _Started | None) -> _Fate:
        pause = _inside(self.around.leaderless, at_ns)
        if pause is not None:
            seconds = (pause[1] - pause[0]) / NS_PER_S
            why = f"no controller manager led for {seconds:.0f} s"
            if rule.deadline_ns is not None and pause[1] - at_ns > rule.deadline_ns:
                # What lies before the deadline's window is not even looked at: no rule can tell it.
                why += (
                    f"; the next one led {(pause[1] - at_ns) / NS_PER_S:.0f} s after it was due, "
                    f"past startingDeadlineSeconds ({rule.deadline_ns // NS_PER_S} s): such a "
                    "time is dropped without an Event"
                )
            return _Fate("missed", "no-leader", why)
        if _inside(self.gave_up, at_ns) is not None:
            why = (
                "the controller gave up (Event FailedNeedsStart): more than 100 times were due "
                "since the last run, and it lists them all"
            )
            return _Fate("missed", "too-many-missed", why)
        if self.around.end_ns - at_ns < END_SLACK_NS:
            return _Fate("pending", None, "due just before the record ends")
        if rule.deadline_ns is not None:
            limit = f"{rule.deadline_ns // NS_PER_S} s"
            why = f"not started within startingDeadlineSeconds ({limit}), which no Event tells"
            return _Fate("missed", "startingDeadlineSeconds", why)
        if later is not None:
            why = f"only the most recent due time is started: {later.name} was started instead"
            return _Fate("missed", "most-recent-only", why)
        if self.stopped_by is not None:
            why = (
                f"the controller armed no timer when it met {self.stopped_by}, which is not its "
                "own: it comes back when the CronJob or a Job of it changes"
            )
        else:
            why = "nothing in the record explains why it was not started"
        return _Fate("missed", "name-taken" if self.stopped_by else None, why)

    def _name_taken(self, at_ns: int) -> _Fate | None:
        """A Job of the wanted name that was there before, the CronJob's own or another's."""
        namespace, cron_job = self.key
        number = at_ns // (NS_PER_S if self.era.controller is Controller.POLLING else _MINUTE_NS)
        name = f"{cron_job}-{number}"
        own = next((job for job in self.jobs if job.name == name), None)
        if own is not None and own.created_ns < at_ns < (own.gone_ns or 1 << 62):
            why = f"{name}, which names the CronJob as its owner, was there already"
            return _Fate("missed", "name-taken", why)
        created_ns, gone_ns = self.around.others.get((namespace, name), (1 << 62, 0))
        if not created_ns < at_ns < gone_ns:
            return None
        if self.era.exists is Exists.RECOVER:
            self.stopped_by = name
        why = f"{name}, which is not the CronJob's, was there already"
        return _Fate("missed", "name-taken", why)


def _inside(
    spans: Sequence[tuple[int, int]], at_ns: int, *, before_ns: int = 0
) -> tuple[int, int] | None:
    """The first span that holds the time, or begins so soon after it."""
    return next((s for s in spans if s[0] - before_ns <= at_ns <= s[1]), None)


def _rule(row: dict[str, Any]) -> _Rule:
    try:
        raw = json.loads(row["spec"] or "{}")
    except ValueError:
        raw = {}
    spec = cron_spec_from_raw(raw if isinstance(raw, dict) else {})
    status = CronJobStatus((), row["last_schedule_ns"])
    created_ns = row["created_ns"] or row["recv_ns"] or 0
    view = CronJobView(
        row["namespace"] or "", row["name"] or "", "", 0, 0, created_ns, None, spec, status
    )
    deadline_s = spec.starting_deadline_s
    return _Rule(
        row["recv_ns"] or 0,
        view,
        f"{spec.schedule} ({spec.time_zone})" if spec.time_zone else spec.schedule,
        spec.concurrency_policy,
        spec.suspend,
        None if deadline_s is None else deadline_s * NS_PER_S,
    )
