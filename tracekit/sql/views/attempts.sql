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
--@ running_at | when it was first seen in the phase Running, or ended | it never was
--@ ready_at | first `lastTransitionTime` of the condition Ready while it was True | it never was ready
--@ finished_at | when the last container ended, else when the phase Succeeded or Failed was first seen | it was not seen to end
--@ deletion_at | when it was first seen with a deletionTimestamp, or gone | nobody deleted it
--@ gone_at | when its DELETED was received | it was there at the end
--@ exit_code | of its terminated regular containers, the exit code of the one that ended with an error first, else 0 | none had terminated
--@ signal | signal of the container with that exit code | none was reported
--@ reason | `.status.reason`, else the reason of that container | nothing was reported
--@ message | `.status.message`, else the termination message of that container | nothing was reported
--@ restarts | container restarts inside the pod | no container statuses
--@ index_failed | whether the Job counts its completion index as failed (`.status.failedIndexes`) | pods of NonIndexed Jobs
--@ ended_by | container (it ended by itself), kubelet (deadline, eviction by the node), else as deleted_by | still alive at the end
--@ deleted_by | who deleted it: job-controller, garbage-collector, eviction (through its API), kube-scheduler (preemption), taint-eviction-controller, pod-garbage-collector, namespace-controller, user, or unknown (Events or Jobs were not seen then) | nobody deleted it
--@ delete_evidence | from what that is known, with the rule | nobody deleted it
--@ queue_s | from creation to the start by the kubelet, seconds: exact, by receipt, where both were watched; else between the API's whole seconds | it never started
--@ run_s | from startTime to finished_at, seconds | one of the two is null
--@ pod_s | seconds in which it held its node: from the first sight of the binding to its end, or to the end of the trace | it was never bound
--@ cpu_request | cores that it requests, as the scheduler counts them | it requests none
--@ memory_request | bytes that it requests | it requests none
--= phase | Pending, Running, Succeeded, Failed, Unknown
--= ended_by | container, kubelet, job-controller, garbage-collector, namespace-controller, eviction, kube-scheduler, taint-eviction-controller, pod-garbage-collector, user, unknown
--= deleted_by | job-controller, garbage-collector, namespace-controller, eviction, kube-scheduler, taint-eviction-controller, pod-garbage-collector, user, unknown
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
         min(recv_ns) FILTER (type = 'ADDED') AS added_ns,
         min(recv_ns) FILTER (start_ns IS NOT NULL AND type <> 'LIST') AS start_seen_ns,
         min(recv_ns) FILTER (phase IN ('Running', 'Succeeded', 'Failed')) AS running_ns,
         any_value(spec) AS spec,
         arg_max(message, _order) AS message,
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
  SELECT trace, seq, failing_exit(containers) AS last_exit,
         last_finish_ns(containers) AS last_finish_ns,
         failing_message(raw) AS last_message
  FROM internal._states
  WHERE stream = 'pods'
    AND (phase IN ('Succeeded', 'Failed') OR type = 'DELETED')
    AND containers IS NOT NULL
),
failed_indexes AS (
  SELECT trace, namespace, uid AS job_uid, arg_max(failed_indexes, _order) AS failed_indexes
  FROM internal._states
  WHERE stream = 'jobs' AND failed_indexes IS NOT NULL
  GROUP BY ALL
),
joined AS (
  SELECT pods.*, ends.last_exit, ends.last_message, deletions.deleted_by, deletions.delete_evidence,
         failed_indexes.failed_indexes, trace_end_ns,
         coalesce(ends.last_finish_ns, pods.ended_ns) AS finished_ns,
         pods.ended_ns IS NOT NULL
           AND (pods.deletion_ns IS NULL OR pods.ended_ns < pods.deletion_ns) AS by_itself
  FROM pods
  LEFT JOIN ends ON ends.trace = pods.trace AND ends.seq = pods.last_seq
  LEFT JOIN internal._deletions AS deletions
    ON deletions.trace = pods.trace AND deletions.namespace = pods.namespace
    AND deletions.uid = pods.pod_uid AND deletions.stream = 'pods'
  LEFT JOIN failed_indexes
    ON failed_indexes.trace = pods.trace AND failed_indexes.namespace = pods.namespace
    AND failed_indexes.job_uid = pods.job_uid
  LEFT JOIN internal._ends ON internal._ends.trace = pods.trace
)
SELECT trace, namespace, job, job_uid, index,
       row_number() OVER (
         PARTITION BY trace, namespace, job_uid, index ORDER BY created_ns, first_seq
       ) AS attempt,
       pod, pod_uid, node, phase COLLATE NOCASE AS phase,
       utc(created_ns) AS created_at,
       utc(bound_ns) AS bound_at,
       utc(start_ns) AS started_at,
       utc(running_ns) AS running_at,
       utc(ready_ns) AS ready_at,
       utc(finished_ns) AS finished_at,
       utc(deletion_ns) AS deletion_at,
       utc(gone_ns) AS gone_at,
       last_exit.exit_code AS exit_code,
       last_exit.signal AS signal,
       coalesce(reason, last_exit.reason) AS reason,
       coalesce(message, last_message) AS message,
       restarts,
       CASE WHEN index IS NOT NULL THEN coalesce(holds_index(failed_indexes, index), false) END
         AS index_failed,
       (CASE
         WHEN by_itself AND reason IS NOT NULL THEN 'kubelet'
         WHEN by_itself THEN 'container'
         ELSE deleted_by
       END) COLLATE NOCASE AS ended_by,
       deleted_by COLLATE NOCASE AS deleted_by,
       delete_evidence,
       waited_s(added_ns, start_seen_ns, created_ns, start_ns) AS queue_s,
       seconds_between(start_ns, finished_ns) AS run_s,
       seconds_between(bound_ns, coalesce(ended_ns, gone_ns, trace_end_ns)) AS pod_s,
       requested(spec, 'cpu') AS cpu_request,
       requested(spec, 'memory') AS memory_request
FROM joined;
