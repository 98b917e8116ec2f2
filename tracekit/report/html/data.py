"""What a report shows, as plain data: the browser draws it, the tests look at it.

Times are milliseconds since the start of the trace, so that a page with tens of thousands of pods
stays small; lists of values stand for objects, in the order that the scripts name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from tracekit.answers.findings.failures import shares
from tracekit.answers.model import Finding
from tracekit.base.collecting import collecting_rarely
from tracekit.base.time_input import ALWAYS, TimeRange
from tracekit.report.conclusion import job_conclusions
from tracekit.report.html.about import About, Row
from tracekit.report.html.diffs import changes, revisions
from tracekit.report.html.happenings import happenings, writes
from tracekit.report.html.lanes import cron_lanes, finding_row, pod_diffs
from tracekit.report.html.narratives import Narratives
from tracekit.report.html.scope import Key, Scope, scope_of
from tracekit.sql.findings import diagnosis_of
from tracekit.sql.session import Session

#: Changed fields that one report may carry, over all revisions; beyond it, diffs are left out.
MAX_DIFF_ENTRIES = 60_000
#: Of each log; the trace has more.
SHOWN_LOG_LINES = 20
SHOWN_LOG_CHARS = 4000
PHASES = (
    "Pending",
    "Scheduled",
    "Running",
    "Ready",
    "Terminating",
    "Succeeded",
    "Failed",
    "Unknown",
)
#: Edits and warnings that are drawn, of each the first ones.
MAX_MARKS = 5_000

#: Gives the rows of a query, their values in its order.
Each = Callable[[str], Iterator[tuple[Any, ...]]]


class Drawn(NamedTuple):
    """The Jobs with what is drawn of each, and what was asked of the views with it."""

    #: By trace, namespace and uid.
    jobs: dict[tuple[str, str, str], Row]
    #: What came of the Jobs of a name, in one sentence.
    conclusions: dict[Key, str]
    edits: list[Row]


@collecting_rarely()
def report_data(
    session: Session,
    key: str | None = None,
    times: TimeRange | None = None,
    namespace: str | None = None,
) -> dict[str, Any]:
    """Everything that the page needs, of the objects and the time that are asked for."""
    if key is None:
        session.hold("_deletions")  # the other views are asked once, and of each a part
    scope = scope_of(session, key, times or ALWAYS, namespace)
    about = About(session, scope, diagnosis_of(session))
    drawn = drawn_of(about)
    put_details(about, drawn)
    return {
        **overview(about, drawn, key),
        "pod_diffs": pod_diffs(about),
        "happenings": happenings(about),
        "writes": writes(about),
        "problems": about.problems,
    }


def drawn_of(about: About) -> Drawn:
    """The Jobs with what is drawn of each: pods, writes, divergences."""
    drawn = seen_of(about)
    put_divergences(about, drawn)
    return drawn


def put_divergences(about: About, drawn: Drawn) -> None:
    """Give each Job its divergences."""
    _attach(drawn.jobs, "verdicts", _divergences(about.divergent, about.ms))


def seen_of(about: About) -> Drawn:
    """The Jobs with their pods and writes, for which nothing need be judged."""
    pods = _pods(about.each, about.ms)
    jobs, conclusions = _jobs(about.rows, about.ms, pods)
    actions, edits = _actions(about.each, about.ms, pods)
    _attach(jobs, "pods", pods)
    _attach(jobs, "actions", actions)
    return Drawn(jobs, conclusions, edits)


def put_details(about: About, drawn: Drawn) -> None:
    """Give each Job what stands beside the timeline once it is chosen."""
    if about.diagnosed is None:
        raise ValueError("the account of a Job needs its verdicts")
    ms, problems, jobs = about.ms, about.problems, drawn.jobs
    _attach(jobs, "history", _history(about))
    _attach(jobs, "events", _events(about.each, ms))
    _attach(jobs, "logs", _logs(about.rows, ms))
    narratives = Narratives(
        about.session, about.diagnosed, about.found, about.scope.jobs, drawn.conclusions, problems
    )
    for job in jobs.values():
        job["account"] = narratives.of_job(job["namespace"], job["job"], ms)


def overview(about: About, drawn: Drawn, title: str | None = None) -> dict[str, Any]:
    """What is drawn, without the details of any Job."""
    session, scope, ms, problems = about.session, about.scope, about.ms, about.problems
    header = session.sources[0].header
    trace = ", ".join(str(source.path) for source in session.sources)
    return {
        "schema_version": 1,
        "title": title or ", ".join(source.name for source in session.sources),
        "trace": trace,
        "version": header.kubernetes_version,
        "rules": _other_rules(session),
        "start_ns": str(about.start_ns),
        "span_ms": ms(about.end_ns) or 1,
        "looked_ms": ms(about.looked_ns),
        "phases": PHASES,
        "findings": [finding_row(finding, ms, trace) for finding in about.found],
        "failures": _failures(about.found),
        "jobs": list(drawn.jobs.values()),
        "crons": cron_lanes(session, scope, ms, problems),
        "pauses": [[ms(p.from_ns), ms(p.until_ns), p.what] for p in about.pauses],
        "leaders": [
            [ms(r["from_ns"]), ms(r["until_ns"]), r["holder"]] for r in session.rows(_LEADERS)
        ],
        "edits": _edits(drawn.edits, scope, ms, problems),
        "warnings": _warnings(session, scope, ms, problems),
        "gaps": [
            [r["stream"], ms(r["from_ns"]) or 0, ms(r["until_ns"]), r["reason"]]
            for r in session.rows(_GAPS)
        ],
        "running": _running(drawn.jobs.values()),
        "judged": about.judged,
        # Where nobody looked for pods, none is not a number.
        "pods_recorded": bool(session.rows("SELECT 1 FROM coverage WHERE stream = 'pods'")),
        "divergences": [_divergence(row, ms) for row in about.divergent],
    }


def _failures(found: Sequence[Finding]) -> list[list[Any]]:
    """What failed Jobs are put down to: the findings about it, how many Jobs, in words."""
    places = {id(finding): place for place, finding in enumerate(found)}
    return [
        [
            [places[id(finding)] for finding in share.findings],
            share.jobs,
            share.why,
            share.rule.id,
            share.is_unknown,
        ]
        for share in shares(found)
    ]


def _other_rules(session: Session) -> str | None:
    """The version whose rules were asked for, where it is not the trace's own."""
    asked = session.rules.kubernetes_version
    own = session.sources[0].header.kubernetes_version
    return asked if asked is not None and own is not None and asked != own else None


def _attach(jobs: dict[tuple[str, str, str], Row], field: str, found: Mapping[Any, Any]) -> None:
    for key, job in jobs.items():
        job[field] = found.get(key, [])


_JOBS = """
SELECT trace, namespace, job, job_uid, cronjob, outcome, reason, message,
       epoch_ns(created_at) AS created, epoch_ns(started_at) AS started,
       epoch_ns(finished_at) AS finished, epoch_ns(gone_at) AS gone,
       queue_s, duration_s, backoff_s, retries, pods AS pod_count, pods_failed, restarts,
       succeeded, failed, parallelism, completions, backoff_limit, image, active,
       active_deadline_s, ttl_s, completion_mode
FROM jobs WHERE {where} ORDER BY created_at, namespace, job
"""
#: What only the sentence about a Job needs.
_TOLD_IN_WORDS = ("active", "completion_mode")
_LEADERS = """
SELECT holder, epoch_ns(from_at) AS from_ns, epoch_ns(until_at) AS until_ns
FROM leaders WHERE lease = 'kube-controller-manager' ORDER BY from_at
"""
_GAPS = """
SELECT stream, epoch_ns(from_at) AS from_ns, epoch_ns(until_at) AS until_ns, reason
FROM gaps ORDER BY from_at
"""


def _jobs(
    ask: Any, ms: Any, pods: Mapping[Any, Sequence[Any]]
) -> tuple[dict[tuple[str, str, str], Row], dict[Key, str]]:
    """The Jobs, oldest first, and what came of each name in one sentence."""
    found, job_rows = {}, []
    for row in ask(_JOBS):
        key = (row["trace"], row["namespace"], row["job_uid"])
        job_rows.append({**row, "pods": row["pod_count"], "exit_codes": _exit_codes(pods.get(key))})
        for name in _TOLD_IN_WORDS:
            del row[name]
        for name in ("created", "started", "finished", "gone"):
            row[name] = ms(row[name])
        found[key] = row
    return found, job_conclusions(job_rows)


def _exit_codes(pods: Sequence[Any] | None) -> dict[int, int]:
    """How many of a Job's pods failed with each exit code, in their order.

    Those that the Job controller ended failed by no error of their own.
    """
    ended = (pod for pod in pods or () if pod[_ENDED_BY] != "job-controller")
    failed = (pod for pod in ended if pod[_PHASE] == "Failed")
    return dict(sorted(Counter(p[_EXIT_CODE] for p in failed if p[_EXIT_CODE] is not None).items()))


def _pods(each: Each, ms: Any) -> dict[Any, list[Any]]:
    spans: defaultdict[Any, list[Any]] = defaultdict(list)
    codes = {phase: code for code, phase in enumerate(PHASES)}
    for trace, namespace, uid, phase, from_ns, until_ns in each(
        "SELECT trace, namespace, pod_uid, phase, epoch_ns(from_at) AS f, epoch_ns(until_at) AS u "
        "FROM pod_phases WHERE {where} ORDER BY from_at"
    ):
        code = codes.get(phase, len(PHASES) - 1)
        spans[trace, namespace, uid].append([code, ms(from_ns), ms(until_ns)])
    pods: defaultdict[Any, list[Any]] = defaultdict(list)
    for trace, namespace, job_uid, uid, *rest in each(
        "SELECT trace, namespace, job_uid, pod_uid, pod, index, attempt, node, phase, exit_code, "
        "reason, ended_by, restarts, queue_s, run_s "
        "FROM attempts WHERE {where} ORDER BY created_at, index, attempt, pod"
    ):
        pods[trace, namespace, job_uid].append([uid, *rest, spans[trace, namespace, uid]])
    return pods


#: Places in what is told of a pod.
_PHASE, _EXIT_CODE, _ENDED_BY = 5, 6, 8
_ACTIONS = """
SELECT trace, namespace, uid, kind, epoch_ns(seen_at) AS at_ns, action, object, actor, rv,
       coalesce({where} AND kind <> 'CronJob', false) AS ours,
       kind IN ('Job', 'CronJob')
         AND action IN ('job-create', 'job-update', 'job-delete', 'cronjob-create',
                        'cronjob-update', 'cronjob-delete')
         AND (actor IS NULL OR actor NOT IN ('job-controller', 'cronjob-controller',
                                             'ttl-after-finished-controller')) AS edit
FROM actions WHERE ours OR edit ORDER BY seen_at, seq
"""


def _actions(
    each: Each, ms: Any, pods: Mapping[Any, Sequence[Any]]
) -> tuple[dict[Any, list[Any]], list[Row]]:
    """Writes by Job, those to pods with the Job that owns them; and what users wrote."""
    owners = {
        (trace, namespace, pod[0]): uid
        for (trace, namespace, uid), of in pods.items()
        for pod in of
    }
    found: defaultdict[Any, list[Any]] = defaultdict(list)
    edits: list[Row] = []
    for trace, namespace, uid, kind, at_ns, action, name, actor, rv, ours, edit in each(_ACTIONS):
        if ours:
            owner = owners.get((trace, namespace, uid)) if kind == "Pod" else uid
            found[trace, namespace, owner].append([ms(at_ns), action, name, actor, rv])
        if edit:
            rest = {"namespace": namespace, "kind": kind, "object": name, "at_ns": at_ns}
            edits.append({**rest, "action": action, "actor": actor})
    return found, edits


def _events(each: Each, ms: Any) -> dict[Any, list[Any]]:
    found: defaultdict[Any, list[Any]] = defaultdict(list)
    for trace, namespace, uid, at_ns, *rest in each(
        "SELECT trace, namespace, object_uid, epoch_ns(seen_at) AS at_ns, event_type, reason, "
        "message, count FROM k8s_events WHERE {where} AND kind = 'Job' ORDER BY seen_at"
    ):
        found[trace, namespace, uid].append([ms(at_ns), *rest])
    return found


def _logs(ask: Any, ms: Any) -> dict[Any, list[Any]]:
    """The last lines of containers that ended, or why there are none."""
    found: defaultdict[Any, list[Any]] = defaultdict(list)
    for row in ask(
        "SELECT trace, namespace, job_uid, epoch_ns(coalesce(finished_at, seen_at)) AS at_ns, pod, "
        "container, restart, exit_code, reason, text, gap FROM logs "
        "WHERE {where} ORDER BY at_ns, pod, container, restart"
    ):
        said = [f"its log could not be had: {row['gap']}"] if row["gap"] else []
        said += (row["text"] or "").splitlines()[-SHOWN_LOG_LINES:]
        names = ("pod", "container", "restart", "exit_code", "reason")
        found[row["trace"], row["namespace"], row["job_uid"]].append(
            [ms(row["at_ns"]), *(row[name] for name in names), "\n".join(said)[-SHOWN_LOG_CHARS:]]
        )
    return found


def _history(about: About) -> dict[Any, list[Any]]:
    ms, diffs = about.ms, _diffs(about)
    found: defaultdict[Any, list[Any]] = defaultdict(list)
    for trace, seq, namespace, uid, at_ns, *rest in about.each(
        "SELECT trace, seq, namespace, job_uid, epoch_ns(seen_at) AS at_ns, rv, changes, writer "
        "FROM job_history WHERE {where} ORDER BY rv, seq"
    ):
        found[trace, namespace, uid].append([ms(at_ns), *rest, diffs.get((trace, seq), [])])
    return found


def _diffs(about: About) -> dict[tuple[str, int], list[Any]]:
    """Per revision of a Job: the fields that changed, with the value before and after."""
    rows = revisions(
        about.session, about.scope, "jobs", "trace, seq, namespace, uid, raw", "uid, _order, seq"
    )

    def full() -> None:
        about.problems.append(
            "the report would be too large with every object diff: ask for one Job to see its"
        )

    rest = changes(rows, 4, itemgetter(0, 2, 3), MAX_DIFF_ENTRIES, full)
    return {(trace, seq): changed for (trace, seq, *_), changed in rest}


def _divergences(divergent: Iterable[Row], ms: Any) -> dict[Any, list[Any]]:
    found: defaultdict[Any, list[Any]] = defaultdict(list)
    for row in divergent:
        if row["kind"] == "Job":
            fields = [[f["path"], f["expected"], f["observed"]] for f in row["fields"] or ()]
            found[row["trace"], row["namespace"], row["uid"]].append(
                [
                    ms(row["at_ns"]),
                    row["action"],
                    row["verdict"],
                    row["subject"],
                    row["why"],
                    fields,
                ]
            )
    return found


def _divergence(row: Row, ms: Any) -> Row:
    """One of the divergences of all controllers, those of CronJobs too."""
    names = (
        "controller", "kind", "namespace", "name", "uid", "action", "verdict", "resource_version",
        "subject", "why", "fields",
    )  # fmt: skip
    return {"at": ms(row["at_ns"]), **{name: row[name] for name in names}}


def _running(jobs: Iterable[Row]) -> list[list[float]]:
    """How many pods were Running or Ready, one point per change (at most some thousands)."""
    running = {PHASES.index("Running"), PHASES.index("Ready")}
    changes: defaultdict[float, int] = defaultdict(int)
    for job in jobs:
        for pod in job["pods"]:
            for code, since, until in pod[-1]:
                if code in running and since is not None:
                    changes[since] += 1
                    if until is not None:
                        changes[until] -= 1
    points: list[list[float]] = [[0, 0]]
    total = 0
    for at_ms in sorted(changes):
        total += changes[at_ms]
        points.append([at_ms, total])
    step = max(1, len(points) // 4000)
    return points[::step] if step > 1 else points


def _edits(rows: Iterable[Row], scope: Scope, ms: Any, problems: list[str]) -> list[Any]:
    """What users wrote to Jobs and CronJobs, with the one who did where it is known."""
    shown = _first(_in_scope(rows, scope), "edits", problems)
    return [
        [ms(r["at_ns"]), r["action"], f"{r['namespace']}/{r['object']}", r["actor"]] for r in shown
    ]


def _warnings(session: Session, scope: Scope, ms: Any, problems: list[str]) -> list[Any]:
    """Events of type Warning."""
    rows = session.rows(
        "SELECT namespace, kind, object, epoch_ns(seen_at) AS at_ns, reason, message FROM "
        "k8s_events WHERE event_type = 'Warning' ORDER BY seen_at"
    )
    shown = _first(_in_scope(rows, scope), "Events of type Warning", problems)
    return [
        [ms(r["at_ns"]), r["reason"], f"{r['namespace']}/{r['object']}", r["message"]]
        for r in shown
    ]


def _in_scope(rows: Iterable[Row], scope: Scope) -> list[Row]:
    """The rows about objects that are shown, within the time that is asked for."""
    return [
        row
        for row in rows
        if scope.holds(row["kind"], row["namespace"], row["object"])
        and scope.times.holds(row["at_ns"] or 0)
    ]


def _first(rows: list[Row], what: str, problems: list[str]) -> list[Row]:
    """As many as are drawn; what is left out is told."""
    if len(rows) > MAX_MARKS:
        problems.append(
            f"of {len(rows):,} {what} the first {MAX_MARKS:,} are drawn: ask for a Job, a CronJob "
            "or a time to see its own"
        )
    return rows[:MAX_MARKS]
