-- Who else wrote to Jobs and their pods, besides the controllers?
SELECT actor, action, count(*) AS writes, min(seen_at) AS first_at, max(seen_at) AS last_at
FROM actions
WHERE actor IS NULL OR actor NOT IN ('job-controller', 'cronjob-controller')
GROUP BY ALL
ORDER BY writes DESC
