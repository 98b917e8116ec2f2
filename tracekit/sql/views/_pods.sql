--- One row per pod of a Job: what counting and waiting needs, cheaper than `attempts`.
CREATE VIEW internal._pods AS
SELECT trace, namespace, uid AS pod_uid,
       max(owner_uid) AS job_uid,
       max(completion_index) AS index,
       max(phase) FILTER (phase IN ('Succeeded', 'Failed')) AS phase,
       max(restarts) AS restarts,
       max(start_ns) AS start_ns,
       coalesce(min(recv_ns) FILTER (type = 'ADDED'), min(created_ns)) AS appeared_ns,
       min(recv_ns) FILTER (phase = 'Failed') AS failed_ns
FROM internal._states
WHERE stream = 'pods'
GROUP BY ALL
HAVING max(job) IS NOT NULL;
