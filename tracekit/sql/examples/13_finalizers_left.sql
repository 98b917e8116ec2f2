-- Which ended pods still have the tracking finalizer, or kept it long?
SELECT namespace, job, name AS pod, ended_at, round(after_end_s, 3) AS after_end_s, left_behind
FROM finalizers
WHERE kind = 'Pod' AND finalizer = 'batch.kubernetes.io/job-tracking' AND ended_at IS NOT NULL
ORDER BY left_behind DESC, after_end_s DESC
LIMIT 50
