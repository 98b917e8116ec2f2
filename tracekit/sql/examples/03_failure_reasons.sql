-- Which reasons and exit codes do failed pods have?
SELECT reason, exit_code, ended_by, count(*) AS pods, count(DISTINCT job_uid) AS jobs
FROM attempts
WHERE phase = 'Failed'
GROUP BY ALL
ORDER BY pods DESC
