-- Which images fail, and with what?
SELECT jobs.image, attempts.exit_code, attempts.signal, count(*) AS pods
FROM attempts JOIN jobs USING (trace, namespace, job_uid)
WHERE attempts.exit_code <> 0
GROUP BY ALL
ORDER BY pods DESC
