--- One row per pod that a Job owned: when it began and ended, how, and who ended it.
--- Times of the API are whole seconds; those of receipt are exact, on the recorder's clock.
--@ trace | name of the trace | never
--@ namespace | the pod's namespace | never
--@ job | name of the Job that owned it last | never
--@ job_uid | uid of that Job | never
--@ index | completion index (annotation job-completion-index) | pods of NonIndexed Jobs
--@ attempt | 1 for the first pod of the Job (of the index, if it has one), by creation | never
--@ pod | the pod's name | never
--@ pod_uid | the pod's uid | never
--@ node | `.spec.nodeName` | it was never bound
--@ phase | last `.status.phase` seen | absent in the object
--@ created_at | `.metadata.creationTimestamp`, UTC | absent in the object
--@ bound_at | when the pod was first seen with a node | it was never seen bound
--@ started_at | `.status.startTime`: the kubelet took the pod | it never was
--@ ready_at | first `lastTransitionTime` of the condition Ready while it was True | it never was ready
--@ finished_at | when the last container ended, else when the phase Succeeded or Failed was first seen | it was not seen to end
--@ deletion_at | when it was first seen with a deletionTimestamp, or gone | nobody deleted it
--@ gone_at | when its DELETED was received | it was there at the end
--@ exit_code | greatest exit code of its terminated regular containers | none had terminated
--@ signal | signal of the container with that exit code | none was reported
--@ reason | `.status.reason`, else the reason of the terminated container with the greatest exit code | nothing was reported
--@ restarts | container restarts inside the pod | no container statuses
--@ ended_by | container (it ended by itself), kubelet (deadline, eviction by the node), eviction (condition DisruptionTarget), job-controller (Event SuccessfulDelete), garbage-collector (its Job was being deleted or gone), somebody (another deletion) | still alive at the end
--@ queue_s | from creation to startTime, seconds | it never started
--@ run_s | from startTime to finished_at, seconds | one of the two is null
CREATE VIEW attempts AS
WITH
pods AS (
  SELECT trace, namespace, uid AS pod_uid,
         any_value(name) AS pod,
         max(job) AS job,
         max(owner_uid) AS job_uid,
         max(completion_index) AS index,
         min(seq) AS first_seq,
         max(node_name) AS node,
         min(created_ns) AS created_ns,
         min(recv_ns) FILTER (node_name IS NOT NULL) AS bound_ns,
         max(start_ns) AS start_ns,
         min(pod_ready_since_ns) FILTER (pod_ready) AS ready_ns,
         min(recv_ns) FILTER (phase IN ('Succeeded', 'Failed')) AS ended_ns,
         min(recv_ns) FILTER (type = 'DELETED' OR deleted_ns IS NOT NULL) AS deletion_ns,
         max(recv_ns) FILTER (type = 'DELETED') AS gone_ns,
         arg_max(phase, _order) AS phase,
         arg_max(reason, _order) AS reason,
         arg_max(seq, _order) AS last_seq,
         max(restarts) AS restarts
  FROM internal._states
  WHERE stream = 'pods'
  GROUP BY trace, namespace, uid
  HAVING max(job) IS NOT NULL
),
ends AS (
  SELECT trace, seq, worst_exit(containers) AS last_exit,
         last_finish_ns(containers) AS last_finish_ns,
         list_contains(list_transform(conditions, lambda c: c.type || c.status),
                       'DisruptionTargetTrue') AS disrupted
  FROM internal._states
  WHERE stream = 'pods'
    AND (phase IN ('Succeeded', 'Failed') OR type = 'DELETED')
    AND (containers IS NOT NULL OR conditions IS NOT NULL)
),
deletions AS (
  SELECT trace, involved_namespace AS namespace,
         substr(message, 14) AS pod
  FROM internal._rows
  WHERE stream = 'events' AND reason = 'SuccessfulDelete' AND involved_kind = 'Job'
    AND starts_with(message, 'Deleted pod: ')
  GROUP BY ALL
),
job_ends AS (
  SELECT trace, namespace, uid AS job_uid,
         min(recv_ns) FILTER (type = 'DELETED' OR deleted_ns IS NOT NULL) AS job_deletion_ns
  FROM internal._states
  WHERE stream = 'jobs'
  GROUP BY ALL
  HAVING job_deletion_ns IS NOT NULL
),
joined AS (
  SELECT pods.*, ends.last_exit,
         coalesce(ends.disrupted, false) AS disrupted,
         deletions.pod IS NOT NULL AS by_controller, job_ends.job_deletion_ns,
         coalesce(ends.last_finish_ns, pods.ended_ns) AS finished_ns,
         pods.ended_ns IS NOT NULL
           AND (pods.deletion_ns IS NULL OR pods.ended_ns < pods.deletion_ns) AS by_itself
  FROM pods
  LEFT JOIN ends ON ends.trace = pods.trace AND ends.seq = pods.last_seq
  LEFT JOIN deletions
    ON deletions.trace = pods.trace AND deletions.namespace = pods.namespace
    AND deletions.pod = pods.pod
  LEFT JOIN job_ends
    ON job_ends.trace = pods.trace AND job_ends.namespace = pods.namespace
    AND job_ends.job_uid = pods.job_uid
)
SELECT trace, namespace, job, job_uid, index,
       row_number() OVER (
         PARTITION BY trace, namespace, job_uid, index ORDER BY created_ns, first_seq
       ) AS attempt,
       pod, pod_uid, node, phase,
       utc(created_ns) AS created_at,
       utc(bound_ns) AS bound_at,
       utc(start_ns) AS started_at,
       utc(ready_ns) AS ready_at,
       utc(finished_ns) AS finished_at,
       utc(deletion_ns) AS deletion_at,
       utc(gone_ns) AS gone_at,
       last_exit.exit_code AS exit_code,
       last_exit.signal AS signal,
       coalesce(reason, last_exit.reason) AS reason,
       restarts,
       CASE
         WHEN disrupted THEN 'eviction'
         WHEN by_itself AND reason IS NOT NULL THEN 'kubelet'
         WHEN by_itself THEN 'container'
         WHEN deletion_ns IS NULL THEN NULL
         WHEN by_controller THEN 'job-controller'
         WHEN job_deletion_ns <= deletion_ns THEN 'garbage-collector'
         ELSE 'somebody'
       END AS ended_by,
       seconds_between(created_ns, start_ns) AS queue_s,
       seconds_between(start_ns, finished_ns) AS run_s
FROM joined;
