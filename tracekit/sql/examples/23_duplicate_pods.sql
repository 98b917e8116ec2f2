-- Where did more pods run at once than the Job's parallelism allows?
WITH ran AS MATERIALIZED (
  SELECT trace, namespace, job_uid, started_at, coalesce(finished_at, gone_at) AS until_at
  FROM attempts
  WHERE started_at IS NOT NULL
),
steps AS (
  SELECT trace, namespace, job_uid, started_at AS changed_at, 1 AS step FROM ran
  UNION ALL
  SELECT trace, namespace, job_uid, until_at, -1 FROM ran WHERE until_at IS NOT NULL
),
peaks AS (
  SELECT trace, namespace, job_uid, changed_at, sum(step) OVER (
    PARTITION BY trace, namespace, job_uid ORDER BY changed_at, step
  ) AS running
  FROM steps
)
SELECT jobs.namespace, jobs.job, parallelism, max(running) AS most_at_once,
       arg_max(changed_at, running) AS changed_at
FROM peaks JOIN jobs USING (trace, namespace, job_uid)
GROUP BY ALL
HAVING max(running) > parallelism
ORDER BY most_at_once DESC
LIMIT 50
