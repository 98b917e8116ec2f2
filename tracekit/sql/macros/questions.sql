--- active_at(ts): the pods of Jobs that were alive at a time (UTC): created by then, not ended and not gone.
CREATE MACRO active_at(ts) AS TABLE
SELECT trace, namespace, job, pod, index, attempt, node, created_at, started_at, ready_at,
       coalesce(finished_at, gone_at) AS until_at
FROM attempts
WHERE created_at <= ts::TIMESTAMP
  AND (coalesce(finished_at, gone_at) IS NULL OR coalesce(finished_at, gone_at) > ts::TIMESTAMP);

--- concurrency(ns): how many pods of Jobs ran at once in a namespace (NULL: in all), one row per change.
CREATE MACRO concurrency(ns) AS TABLE
WITH
pods AS (
  SELECT trace, started_at, coalesce(finished_at, gone_at) AS until_at
  FROM attempts
  WHERE started_at IS NOT NULL AND (ns IS NULL OR namespace = ns)
),
changes AS (
  SELECT trace, started_at AS changed_at, 1 AS step FROM pods
  UNION ALL
  SELECT trace, until_at, -1 FROM pods WHERE until_at IS NOT NULL
),
sums AS (
  SELECT trace, changed_at, sum(step) AS step FROM changes GROUP BY ALL
)
SELECT trace, changed_at, sum(step) OVER (PARTITION BY trace ORDER BY changed_at)::BIGINT AS running
FROM sums
WHERE step <> 0
ORDER BY trace, changed_at;

--- timeline(job_key): everything that happened to one Job, given as 'NAMESPACE/NAME', in order of receipt.
CREATE MACRO timeline(job_key) AS TABLE
WITH
happened AS (
  SELECT trace, seen_at, seq, 'job' AS what, job AS object,
         array_to_string(changes, ', ') AS detail, writer AS who
  FROM job_history
  WHERE namespace = split_part(job_key, '/', 1) AND job = substr(job_key, strpos(job_key, '/') + 1)
    AND len(changes) > 0
  UNION ALL
  SELECT trace, seen_at, seq, 'action', object, action, actor
  FROM actions
  WHERE namespace = split_part(job_key, '/', 1) AND job = substr(job_key, strpos(job_key, '/') + 1)
    AND kind = 'Pod'
  UNION ALL
  SELECT trace, from_at, NULL, 'pod', pod, phase, NULL
  FROM pod_phases
  WHERE namespace = split_part(job_key, '/', 1) AND job = substr(job_key, strpos(job_key, '/') + 1)
  UNION ALL
  SELECT trace, seen_at, NULL, 'event', name, reason || ': ' || message, component
  FROM k8s_events
  WHERE namespace = split_part(job_key, '/', 1) AND job = substr(job_key, strpos(job_key, '/') + 1)
)
SELECT trace, seen_at, what, object, detail, who
FROM happened
ORDER BY trace, seen_at, seq NULLS LAST, what;
