-- Which deleted pods took longest to go?
SELECT namespace, job, name AS pod, deletion_at, gone_at, deleted_by, round(going_s, 1) AS going_s
FROM deletions
WHERE kind = 'Pod'
ORDER BY going_s DESC NULLS FIRST
LIMIT 20
