--- One row per pod and phase that it was in, with Pending and Running told apart further.
--@ trace | name of the trace | never
--@ namespace | the pod's namespace | never
--@ job | the Job that owned it last | never
--@ pod | the pod's name | never
--@ pod_uid | the pod's uid | never
--@ index | completion index | pods of NonIndexed Jobs
--@ phase | Pending (no node yet), Scheduled (Pending with a node), Running, Ready (Running and Ready), Succeeded, Failed, Unknown; Terminating once it has a deletionTimestamp and has not ended | never
--@ from_at | when it was first seen in this phase, UTC | no time was known yet
--@ until_at | when it was first seen in the next phase, or gone | it was in this phase at the end
--@ duration_s | between the two, seconds | until_at is null
--= phase | Pending, Scheduled, Running, Ready, Succeeded, Failed, Unknown, Terminating
CREATE VIEW pod_phases AS
WITH
states AS (
  SELECT trace, namespace, name AS pod, uid AS pod_uid, _order, seq, recv_ns, type, job,
         completion_index AS index,
         CASE
           WHEN type = 'DELETED' THEN 'gone'
           WHEN phase IN ('Succeeded', 'Failed') THEN phase
           WHEN deleted_ns IS NOT NULL THEN 'Terminating'
           WHEN phase = 'Pending' AND node_name IS NOT NULL THEN 'Scheduled'
           WHEN phase = 'Running' AND pod_ready THEN 'Ready'
           ELSE coalesce(nullif(phase, ''), 'Pending')
         END AS phase
  FROM internal._states
  WHERE stream = 'pods'
),
changes AS (
  SELECT *, max(job) OVER (PARTITION BY trace, namespace, pod_uid) AS last_job
  FROM states
  QUALIFY phase IS DISTINCT FROM lag(phase) OVER (
    PARTITION BY trace, namespace, pod_uid ORDER BY _order, seq
  )
),
spans AS (
  SELECT *, lead(recv_ns) OVER (
    PARTITION BY trace, namespace, pod_uid ORDER BY _order, seq
  ) AS until_ns
  FROM changes
)
SELECT trace, namespace, last_job AS job, pod, pod_uid, index, phase COLLATE NOCASE AS phase,
       utc(recv_ns) AS from_at, utc(until_ns) AS until_at,
       seconds_between(recv_ns, until_ns) AS duration_s
FROM spans
WHERE phase <> 'gone' AND last_job IS NOT NULL;
