-- Where did more pods run at once than the Job's parallelism allows?
SELECT namespace, job, parallelism, most_running, most_at, over_s
FROM job_concurrency
WHERE over
ORDER BY over_s DESC
LIMIT 50
