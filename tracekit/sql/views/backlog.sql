--- One row per stretch of time in which the same Jobs and pods waited for the Job controller: Jobs without their first
--- status, and pods that had ended and whose Job had not counted them (their tracking finalizer was still there). Times
--- are those of receipt; a stretch in which nothing waited has no row.
--? How many Jobs and pods waited for the Job controller, and when?
--@ trace | name of the trace | never
--@ from_at | when it began, UTC | never
--@ until_at | when one more or less waited, or the trace ended, UTC | never
--@ seconds | until_at less from_at | never
--@ jobs | Jobs without a startTime that somebody saw come, neither suspended from the start nor another controller's | never; 0 when none was
--@ pods | ended pods with the finalizer batch.kubernetes.io/job-tracking of Jobs that had not ended | never; 0 when none was
--@ waiting | both together | never
CREATE VIEW backlog AS
WITH
begun AS (
  SELECT trace, uid, min(recv_ns) FILTER (type = 'ADDED') AS from_ns,
         min(recv_ns) FILTER (start_ns IS NOT NULL OR type = 'DELETED') AS until_ns,
         min(recv_ns) FILTER (type = 'DELETED' OR deleted_ns IS NOT NULL OR finished_condition(conditions) IS NOT NULL)
           AS over_ns,
         arg_min(spec, _order) AS spec
  FROM internal._states
  WHERE stream = 'jobs'
  GROUP BY trace, uid
),
ours AS (
  FROM begun
  WHERE coalesce(spec->>'$.managedBy', 'kubernetes.io/job-controller') = 'kubernetes.io/job-controller'
),
ended AS (
  SELECT trace, uid, any_value(owner_uid) AS owner_uid, min_by(recv_ns, _order) AS from_ns, min(_order) AS ended_order
  FROM internal._states
  WHERE stream = 'pods' AND phase IN ('Succeeded', 'Failed') AND type NOT IN ('DELETED', 'LIST')
    AND list_contains(finalizers, 'batch.kubernetes.io/job-tracking')
  GROUP BY trace, uid
),
freed AS (
  SELECT s.trace, s.uid, min(s.recv_ns) AS until_ns
  FROM internal._states AS s
  JOIN ended USING (trace, uid)
  WHERE s.stream = 'pods' AND s._order > ended_order
    AND (s.type = 'DELETED' OR NOT coalesce(list_contains(s.finalizers, 'batch.kubernetes.io/job-tracking'), false))
  GROUP BY s.trace, s.uid
),
waited AS (
  SELECT trace, 1 AS job, 0 AS pod, from_ns, until_ns FROM ours
  WHERE from_ns IS NOT NULL AND coalesce(spec->>'$.suspend', 'false') <> 'true'
  UNION ALL
  SELECT ended.trace, 0, 1, ended.from_ns, freed.until_ns
  FROM ended
  JOIN ours ON ours.trace = ended.trace AND ours.uid = ended.owner_uid
  LEFT JOIN freed ON freed.trace = ended.trace AND freed.uid = ended.uid
  WHERE coalesce(ended.from_ns < ours.over_ns, true)
),
steps AS (
  SELECT trace, from_ns AS ns, job, pod FROM waited
  UNION ALL
  SELECT trace, until_ns, -job, -pod FROM waited WHERE until_ns IS NOT NULL
),
changes AS (
  SELECT trace, ns, sum(job) AS job, sum(pod) AS pod FROM steps GROUP BY ALL HAVING sum(job) <> 0 OR sum(pod) <> 0
),
levels AS (
  SELECT trace, ns, sum(job) OVER w AS jobs, sum(pod) OVER w AS pods,
         coalesce(lead(ns) OVER w, trace_end_ns) AS next_ns
  FROM changes
  JOIN internal._ends AS ends USING (trace)
  WINDOW w AS (PARTITION BY trace ORDER BY ns)
)
SELECT trace, utc(ns) AS from_at, utc(next_ns) AS until_at, (next_ns - ns) / 1e9 AS seconds,
       jobs::BIGINT AS jobs, pods::BIGINT AS pods, (jobs + pods)::BIGINT AS waiting
FROM levels
WHERE jobs + pods > 0 AND next_ns > ns
ORDER BY trace, from_at;
