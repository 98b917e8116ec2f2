--- One row per pod of a Job: what counting and waiting needs, cheaper than `attempts`.
CREATE VIEW internal._pods AS
SELECT trace, namespace, uid AS pod_uid,
       any_value(name) AS pod,
       max(job) AS job,
       max(owner_uid) AS job_uid,
       max(completion_index) AS index,
       max(phase) FILTER (phase IN ('Succeeded', 'Failed')) AS phase,
       max(restarts) AS restarts,
       max(node_name) AS node,
       max(start_ns) AS start_ns,
       min(recv_ns) FILTER (start_ns IS NOT NULL AND type <> 'LIST') AS start_seen_ns,
       min(recv_ns) FILTER (node_name IS NOT NULL) AS bound_ns,
       min(recv_ns) FILTER (phase = 'Running') AS running_ns,
       coalesce(min(recv_ns) FILTER (type = 'ADDED'), min(created_ns)) AS appeared_ns,
       min(recv_ns) FILTER (phase = 'Failed') AS failed_ns,
       min(recv_ns) FILTER (phase IN ('Succeeded', 'Failed')) AS ended_ns,
       min(recv_ns) FILTER (type = 'DELETED' OR deleted_ns IS NOT NULL) AS deletion_ns,
       max(recv_ns) FILTER (type = 'DELETED') AS gone_ns,
       min(rv) FILTER (phase = 'Succeeded') AS succeeded_rv,
       min(rv) FILTER (phase = 'Failed' OR type = 'DELETED' OR deleted_ns IS NOT NULL) AS failed_rv
FROM internal._states
WHERE stream = 'pods'
GROUP BY trace, namespace, uid
HAVING max(job) IS NOT NULL;
