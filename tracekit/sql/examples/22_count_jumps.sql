-- Where did succeeded or failed go down, or up by more than the pods that ended?
SELECT namespace, job, seen_at, rv, succeeded, failed, lag_succeeded, lag_failed
FROM (
  SELECT *, lag(succeeded) OVER w AS lag_succeeded, lag(failed) OVER w AS lag_failed
  FROM job_history
  WINDOW w AS (PARTITION BY trace, namespace, job_uid ORDER BY rv, seq)
)
WHERE succeeded < lag_succeeded OR failed < lag_failed
ORDER BY seen_at
LIMIT 100
