--- One row per pod that had not ended when its Job had, or was gone.
--? Which pods outlived their Job?
--@ trace | name of the trace | never
--@ namespace | the pod's namespace | never
--@ job | the Job's name | never
--@ job_uid | its uid | never
--@ pod | the pod's name | never
--@ pod_uid | its uid | never
--@ node | the node that it held | it was never bound
--@ job_end | Complete, Failed or Deleted: how the Job ended first | never
--@ job_end_at | when that was seen, UTC | never
--@ pod_end_at | when the pod was seen to end, or gone | it was there at the end of the trace
--@ outlived_s | between the two, or to the last look at pods, seconds | never
--@ deleted_by | who deleted the pod, as in `deletions` | nobody did
--= job_end | Complete, Failed, Deleted
--= deleted_by | job-controller, garbage-collector, namespace-controller, eviction, kube-scheduler, taint-eviction-controller, pod-garbage-collector, user, unknown
CREATE VIEW outliving_pods AS
WITH
job_ends AS (
  SELECT trace, namespace, uid AS job_uid,
         min(recv_ns) FILTER (finished_condition(conditions) IS NOT NULL) AS finish_ns,
         min(recv_ns) FILTER (type = 'DELETED') AS gone_ns,
         any_value(finished_condition(conditions).type) AS finish
  FROM internal._states
  WHERE stream = 'jobs'
  GROUP BY ALL
),
pairs AS (
  SELECT pods.*, least(finish_ns, job_ends.gone_ns) AS job_end_ns,
         CASE WHEN finish_ns IS NOT NULL AND finish_ns <= coalesce(job_ends.gone_ns, finish_ns)
              THEN finish ELSE 'Deleted' END AS job_end,
         coalesce(ended_ns, pods.gone_ns) AS end_ns,
         -- That a pod is still there is known as of the last look at pods.
         least(trace_end_ns, coalesce((
           SELECT max(c.until_ns) FROM internal._coverage AS c
           WHERE c.trace = pods.trace AND c.stream = 'pods'
             AND (c.namespaces IS NULL OR list_contains(c.namespaces, pods.namespace))
         ), trace_end_ns)) AS as_of_ns
  FROM internal._pods AS pods
  JOIN job_ends USING (trace, namespace, job_uid)
  JOIN internal._ends AS ends
    USING (trace)
)
SELECT pairs.trace, pairs.namespace, pairs.job, job_uid, pod, pod_uid, node, job_end COLLATE NOCASE AS job_end,
       utc(job_end_ns) AS job_end_at, utc(end_ns) AS pod_end_at,
       (coalesce(end_ns, as_of_ns) - job_end_ns) / 1e9 AS outlived_s,
       deletions.deleted_by COLLATE NOCASE AS deleted_by
FROM pairs
LEFT JOIN internal._deletions AS deletions
  ON deletions.trace = pairs.trace AND deletions.uid = pod_uid AND deletions.stream = 'pods'
WHERE job_end_ns IS NOT NULL AND coalesce(end_ns, as_of_ns) > job_end_ns
ORDER BY outlived_s DESC;
