--- One row per Job (per uid: a name that was used again has several), as it was last seen.
--@ trace | name of the trace | never
--@ namespace | `.metadata.namespace` | never
--@ job | `.metadata.name` | never
--@ job_uid | `.metadata.uid` | never
--@ cronjob | the CronJob that owns it | no CronJob does
--@ outcome | Complete or Failed (its condition); Deleted (gone, unfinished); Suspended, Pending (no pod of it has run) or Running at the end | never
--@ reason | reason of the condition Complete or Failed | not finished, or none was given
--@ message | message of that condition | not finished, or none was given
--@ created_at | `.metadata.creationTimestamp`, UTC | absent in the object
--@ started_at | `.status.startTime` (a resume sets it anew) | not started
--@ finished_at | `.status.completionTime`, else `lastTransitionTime` of the condition Failed | not finished
--@ gone_at | when its DELETED was received | it was there at the end
--@ queue_s | from creation to the start of its first pod, seconds: exact, by receipt, where both were watched | no pod started
--@ run_s | from the startTime of its first pod to finished_at, seconds | no pod started, or not finished
--@ duration_s | from started_at to finished_at, seconds | one of the two is null
--@ duration | the same as an interval | one of the two is null
--@ last_pod_end_at | when its last pod was seen to end, or gone | no pod ended
--@ accounting_s | from then to the first sight of the condition Complete or Failed, seconds: exact, by receipt | not finished, or a pod outlived it
--@ backoff_s | time lost to back-off: seconds in which a failed pod had no successor yet but got one later, exact, summed over indexes | 0 when no failed pod was replaced
--@ retries | pods that failed and were followed by a later pod of the same Job (and index) | 0 when there were none
--@ pods | pods of the Job that were seen | 0 when there were none
--@ pods_succeeded | of them, those seen in phase Succeeded | 0 when there were none
--@ pods_failed | of them, those seen in phase Failed | 0 when there were none
--@ restarts | container restarts inside its pods | 0 when there were none
{last counts documented}
--@ parallelism | `.spec.parallelism` | absent in the object
--@ completions | `.spec.completions` | absent: a work-queue Job
--@ completion_mode | `.spec.completionMode` | before 1.21
--@ backoff_limit | `.spec.backoffLimit` | absent in the object
--@ backoff_limit_per_index | `.spec.backoffLimitPerIndex` | absent in the object
--@ active_deadline_s | `.spec.activeDeadlineSeconds` | absent in the object
--@ ttl_s | `.spec.ttlSecondsAfterFinished` | absent in the object
--@ suspended | `.spec.suspend` | absent in the object
--@ managed_by | `.spec.managedBy` | absent in the object
--@ restart_policy | restartPolicy of the pod template | absent in the object
--@ cpu_request | cores that one pod of its template requests | none are requested
--@ memory_request | bytes that one pod of its template requests | none are requested
--@ pod_s | seconds in which its pods held nodes, together | 0 when there were none
--@ labels | `.metadata.labels` as a MAP: `labels['team']` | absent in the object
--@ annotations | `.metadata.annotations` as a MAP | absent in the object
--@ completed_indexes | last `.status.completedIndexes` | absent in the object
--@ failed_indexes | last `.status.failedIndexes` | absent in the object
--@ image | image of the first container of the pod template | absent in the object
--@ revisions | revisions of the Job that were seen | never
--= outcome | Complete, Failed, Deleted, Suspended, Running, Pending
CREATE VIEW jobs AS
WITH
seen AS (
  SELECT trace, namespace, uid,
         arg_max(seq, _order) AS last_seq,
         count(DISTINCT rv) AS revisions,
         min(recv_ns) FILTER (type = 'ADDED') AS added_ns,
         min(recv_ns) FILTER (finished_condition(conditions) IS NOT NULL) AS finish_seen_ns,
         max(recv_ns) FILTER (type = 'DELETED') AS gone_ns
  FROM internal._states
  WHERE stream = 'jobs'
  GROUP BY ALL
),
last AS (
  SELECT seen.revisions, seen.gone_ns, seen.added_ns, seen.finish_seen_ns, states.*,
         finished_condition(states.conditions) AS finish
  FROM seen
  JOIN internal._states AS states
    ON states.trace = seen.trace AND states.seq = seen.last_seq AND states.stream = 'jobs'
),
-- What is taken of the pods stands in a query of its own: DuckDB would compute every column of one
-- with a materialized part, whatever of them is asked for.
of_pods AS (
  WITH
  all_pods AS MATERIALIZED (
    FROM internal._pods
  ),
  pods AS (
    SELECT trace, namespace, job_uid,
           count(*) AS pods,
           count(*) FILTER (phase = 'Succeeded') AS pods_succeeded,
           count(*) FILTER (phase = 'Failed') AS pods_failed,
           count(*) FILTER (coalesce(running_ns, ended_ns) IS NOT NULL) AS pods_run,
           least(sum(restarts), 9223372036854775807)::BIGINT AS restarts,
           min(start_ns) AS first_start_ns,
           min(start_seen_ns) AS first_start_seen_ns,
           max(coalesce(ended_ns, gone_ns)) AS last_end_ns,
           count(*) FILTER (coalesce(ended_ns, gone_ns) IS NULL) AS unended,
           sum(coalesce(ended_ns, gone_ns, trace_end_ns) - bound_ns) / 1e9 AS pod_s
    FROM all_pods
    LEFT JOIN internal._ends AS ends_of_traces USING (trace)
    GROUP BY ALL
  ),
  changes AS (
    SELECT trace, namespace, job_uid, index, appeared_ns AS ns, appeared_ns, false AS failure
    FROM all_pods WHERE job_uid IN (SELECT job_uid FROM all_pods WHERE failed_ns IS NOT NULL)
    UNION ALL
    SELECT trace, namespace, job_uid, index, failed_ns, NULL, true
    FROM all_pods WHERE failed_ns IS NOT NULL
  ),
  -- Each failed pod with the next creation in its Job (and index).
  followed AS (
    SELECT *,
           min(appeared_ns) OVER (
             PARTITION BY trace, namespace, job_uid, index ORDER BY ns, failure
             ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
           ) AS next_ns
    FROM changes
  ),
  -- Failed pods with the same next creation waited for it together.
  waited AS (
    SELECT trace, namespace, job_uid, index, count(*) AS retries, next_ns - min(ns) AS wait_ns
    FROM followed
    WHERE failure AND next_ns IS NOT NULL
    GROUP BY trace, namespace, job_uid, index, next_ns
  ),
  waits AS (
    SELECT trace, namespace, job_uid, sum(retries)::BIGINT AS retries, sum(wait_ns) / 1e9 AS backoff_s
    FROM waited
    GROUP BY ALL
  )
  SELECT pods.*, waits.retries, waits.backoff_s
  FROM pods
  LEFT JOIN waits
    ON waits.trace = pods.trace AND waits.namespace = pods.namespace
    AND waits.job_uid = pods.job_uid
)
SELECT last.trace, last.namespace, last.name AS job, last.uid AS job_uid, last.cronjob,
       (CASE
         WHEN finish IS NOT NULL THEN finish.type
         WHEN gone_ns IS NOT NULL THEN 'Deleted'
         WHEN spec->>'$.suspend' = 'true' THEN 'Suspended'
         WHEN last.start_ns IS NULL THEN 'Pending'
         -- Its startTime tells that its controller took it up, not that anything runs. Where it
         -- counts pods that were not recorded, nothing tells that they do not.
         WHEN coalesce(succeeded, 0) + coalesce(failed, 0) + coalesce(ready, 0)
              + coalesce(pods_run, 0) = 0
              AND coalesce(active, 0) <= coalesce(of_pods.pods, 0) THEN 'Pending'
         ELSE 'Running'
       END) COLLATE NOCASE AS outcome,
       nullif(finish.reason, '') AS reason,
       nullif(finish.message, '') AS message,
       utc(created_ns) AS created_at,
       utc(last.start_ns) AS started_at,
       utc(finished_ns(last.completion_ns, finish)) AS finished_at,
       utc(gone_ns) AS gone_at,
       waited_s(added_ns, first_start_seen_ns, created_ns, first_start_ns) AS queue_s,
       seconds_between(first_start_ns, finished_ns(last.completion_ns, finish)) AS run_s,
       seconds_between(last.start_ns, finished_ns(last.completion_ns, finish)) AS duration_s,
       utc(finished_ns(last.completion_ns, finish)) - utc(last.start_ns) AS duration,
       utc(last_end_ns) AS last_pod_end_at,
       CASE WHEN unended = 0 AND last_end_ns <= finish_seen_ns
            THEN (finish_seen_ns - last_end_ns) / 1e9 END AS accounting_s,
       coalesce(of_pods.backoff_s, 0) AS backoff_s,
       coalesce(of_pods.retries, 0) AS retries,
       coalesce(of_pods.pods, 0) AS pods,
       coalesce(of_pods.pods_succeeded, 0) AS pods_succeeded,
       coalesce(of_pods.pods_failed, 0) AS pods_failed,
       coalesce(of_pods.restarts, 0) AS restarts,
       {counts shown},
       try_cast(spec->>'$.parallelism' AS BIGINT) AS parallelism,
       try_cast(spec->>'$.completions' AS BIGINT) AS completions,
       spec->>'$.completionMode' AS completion_mode,
       try_cast(spec->>'$.backoffLimit' AS BIGINT) AS backoff_limit,
       try_cast(spec->>'$.backoffLimitPerIndex' AS BIGINT) AS backoff_limit_per_index,
       try_cast(spec->>'$.activeDeadlineSeconds' AS BIGINT) AS active_deadline_s,
       try_cast(spec->>'$.ttlSecondsAfterFinished' AS BIGINT) AS ttl_s,
       try_cast(spec->>'$.suspend' AS BOOLEAN) AS suspended,
       spec->>'$.managedBy' AS managed_by,
       spec->>'$.template.spec.restartPolicy' AS restart_policy,
       requested(spec->'$.template.spec', 'cpu') AS cpu_request,
       requested(spec->'$.template.spec', 'memory') AS memory_request,
       coalesce(pod_s, 0) AS pod_s,
       try_cast(try_cast(labels AS JSON) AS MAP(VARCHAR, VARCHAR)) AS labels,
       try_cast(try_cast(annotations AS JSON) AS MAP(VARCHAR, VARCHAR)) AS annotations,
       completed_indexes,
       failed_indexes,
       spec->>'$.template.spec.containers[0].image' AS image,
       revisions
FROM last
LEFT JOIN of_pods
  ON of_pods.trace = last.trace AND of_pods.namespace = last.namespace
  AND of_pods.job_uid = last.uid;
