-- Which pods did not end by themselves, and who ended them?
SELECT namespace, job, pod, ended_by, deletion_at, phase, reason, run_s
FROM attempts
WHERE ended_by NOT IN ('container')
ORDER BY deletion_at
LIMIT 100
