-- Which deleted pods took longest to go?
SELECT namespace, job, pod, deletion_at, gone_at, ended_by,
       round(epoch(gone_at - deletion_at), 1) AS going_s
FROM attempts
WHERE deletion_at IS NOT NULL
ORDER BY going_s DESC NULLS FIRST
LIMIT 20
