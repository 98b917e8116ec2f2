-- How did the Jobs of each namespace and CronJob end?
SELECT namespace, cronjob, outcome, count(*) AS jobs, sum(retries) AS retries,
       round(median(duration_s), 1) AS median_s, round(max(duration_s), 1) AS longest_s
FROM jobs
GROUP BY ALL
ORDER BY jobs DESC
LIMIT 100
