--- One row per root cause, worst first: what it cost with what follows from it (computed). What `tracekit diagnose` says, less the findings that are consequences of others.
--? What were the causes, whose doing was it, and what did each cost?
--@ trace | name of the trace | never
--@ rank | place of its finding in `findings` | never
--@ id | kind of finding, like TK405 | never
--@ severity | error, warning or info: the worst of the cause and of what follows from it | never
--@ cause | what happened, without the objects | never
--@ kind | kind of the objects | never
--@ namespace | namespace of the first of them; empty for what has none | never
--@ name | name of the first of them | never
--@ objects | all of them: kind namespace/name | never
--@ actor | who did it: a user, a controller, the scheduler, the kubelet | nobody did, or nothing tells
--@ since_at | since when, UTC | no time is known
--@ until_at | when it was last so, UTC | no time is known
--@ failed_jobs | Jobs that failed by it | never
--@ unfinished_jobs | Jobs that it keeps from an end, as of the last look | never
--@ missed_runs | times of schedules that were not started, and runs that were replaced | never
--@ late | Jobs and runs that came or ended late | never
--@ lost_pod_s | seconds on a node of those Jobs' pods that came to nothing, as in `wasted_pods` | never
--@ other_objects | objects that are wrong, left behind or lost, and none of the above | never
--@ victims | what follows from it: id kind namespace/name | never; empty where nothing does
--@ advice | what to do | never
--@ thread | number of the thread in kubernetes/kubernetes | there is none
--= severity | error, warning, info
CREATE VIEW causes AS
SELECT trace, rank, id, severity COLLATE NOCASE AS severity, cause, kind, namespace, name, objects, actor,
       utc(from_ns) AS since_at, utc(until_ns) AS until_at, failed_jobs, unfinished_jobs, missed_runs,
       late, lost_pod_s, other_objects, victims, advice, thread
FROM internal._causes
ORDER BY rank;
