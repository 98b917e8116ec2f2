-- How late did CronJobs start?
SELECT namespace, cronjob, schedule, count(*) AS ticks,
       count(*) FILTER (outcome = 'started') AS started,
       round(avg(delay_s), 1) AS mean_s, max(delay_s) AS latest_s
FROM cron_ticks
GROUP BY ALL
ORDER BY latest_s DESC NULLS LAST
