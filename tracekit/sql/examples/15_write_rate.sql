-- How many writes did the Job controller make per second at its busiest?
SELECT date_trunc('second', seen_at) AS second, count(*) AS writes,
       count(*) FILTER (action = 'pod-create') AS pod_creates,
       count(*) FILTER (action = 'status-update') AS status_updates
FROM actions
WHERE actor = 'job-controller'
GROUP BY ALL
ORDER BY writes DESC
LIMIT 10
