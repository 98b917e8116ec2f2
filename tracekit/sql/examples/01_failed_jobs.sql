-- Which Jobs failed, when and why?
SELECT namespace, job, finished_at, reason, message, pods_failed, retries
FROM jobs
WHERE outcome = 'Failed'
ORDER BY finished_at
LIMIT 100
