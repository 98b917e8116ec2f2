-- Where was the most time lost to back-off?
SELECT namespace, job, outcome, retries, round(backoff_s, 1) AS backoff_s, duration_s,
       round(100 * backoff_s / nullif(duration_s, 0)) AS percent
FROM jobs
WHERE retries > 0
ORDER BY backoff_s DESC
LIMIT 20
