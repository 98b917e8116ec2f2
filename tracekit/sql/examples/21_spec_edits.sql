-- Who changed the spec of a Job while it ran?
SELECT seen_at, namespace, job, rv, writer, changes
FROM job_history
WHERE list_contains(changes, 'spec')
ORDER BY seen_at
LIMIT 100
