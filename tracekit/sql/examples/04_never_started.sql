-- Which Jobs never got a pod that started?
SELECT namespace, job, outcome, reason, created_at, pods
FROM jobs
WHERE queue_s IS NULL AND coalesce(completions, 1) > 0
ORDER BY created_at
LIMIT 100
