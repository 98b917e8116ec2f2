-- Which CronJob ticks were not started, and by which rule?
SELECT namespace, cronjob, due_at, outcome, policy, why
FROM cron_ticks
WHERE outcome <> 'started'
ORDER BY due_at
LIMIT 100
