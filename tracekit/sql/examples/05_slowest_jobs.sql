-- Which Jobs took longest?
SELECT namespace, job, outcome, duration_s, queue_s, run_s, backoff_s, pods
FROM jobs
WHERE duration_s IS NOT NULL
ORDER BY duration_s DESC
LIMIT 20
