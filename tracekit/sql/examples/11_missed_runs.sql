-- Which CronJob ticks were not started, and by which rule?
SELECT namespace, cronjob, due_at, outcome, policy, why
FROM missed_runs
ORDER BY due_at
LIMIT 100
