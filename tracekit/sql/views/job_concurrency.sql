--- One row per Job that ran a pod: how many ran at once at most, beside what its spec allows.
--- A pod runs from its start by the kubelet until it has ended or is gone, as it was received.
--? Did more pods of a Job run at once than it allows?
--@ trace | name of the trace | never
--@ namespace | the Job's namespace | never
--@ job | the Job's name | never
--@ job_uid | its uid | never
--@ parallelism | the greatest `.spec.parallelism` that was seen | absent in the object
--@ most_running | most pods that ran at once | never
--@ most_at | when that was first so, UTC | never
--@ over | whether that is more than parallelism allows | never
--@ over_s | how long more ran than that, seconds | never; 0 when never more did
CREATE VIEW job_concurrency AS
WITH
allowed AS (
  SELECT trace, namespace, uid AS job_uid, any_value(name) AS job,
         max(try_cast(spec->>'$.parallelism' AS BIGINT)) AS parallelism
  FROM internal._states
  WHERE stream = 'jobs'
  GROUP BY trace, namespace, uid
),
ran AS (
  SELECT trace, namespace, job_uid, coalesce(start_seen_ns, start_ns) AS from_ns,
         coalesce(ended_ns, gone_ns) AS until_ns
  FROM internal._pods
  WHERE start_ns IS NOT NULL
),
steps AS (
  SELECT trace, namespace, job_uid, from_ns AS ns, 1 AS step FROM ran
  UNION ALL
  SELECT trace, namespace, job_uid, until_ns, -1 FROM ran WHERE until_ns IS NOT NULL
),
changes AS (
  SELECT trace, namespace, job_uid, ns, sum(step) AS step FROM steps GROUP BY ALL
),
levels AS (
  SELECT trace, namespace, job_uid, ns, sum(step) OVER w AS running,
         coalesce(lead(ns) OVER w, trace_end_ns) AS next_ns
  FROM changes
  JOIN internal._ends AS ends
    USING (trace)
  WINDOW w AS (PARTITION BY trace, namespace, job_uid ORDER BY ns)
)
SELECT trace, namespace, job, job_uid, any_value(parallelism) AS parallelism,
       max(running)::BIGINT AS most_running,
       utc(arg_min(ns, {'rank': -running, 'ns': ns})) AS most_at,
       coalesce(max(running) > any_value(parallelism), false) AS over,
       coalesce(sum(next_ns - ns) FILTER (running > parallelism), 0) / 1e9 AS over_s
FROM levels
JOIN allowed USING (trace, namespace, job_uid)
GROUP BY trace, namespace, job, job_uid
ORDER BY over_s DESC, most_running DESC;
