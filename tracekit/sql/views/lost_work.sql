--- One row per completion index of a Job whose pods came to nothing: how much was lost to disruption, to failures of its
--- own, and to the end of its Job. Of Jobs without indexes one row for all of their pods.
--? How much work was lost, index by index, and to what?
--@ trace | name of the trace | never
--@ namespace | the Job's namespace | never
--@ job | the Job's name | never
--@ job_uid | its uid | never
--@ index | completion index | the Job is NonIndexed
--@ pods | pods of the index | never
--@ disrupted | of them, those that somebody else ended before they had done their work: evicted, preempted, deleted by a user, their node lost, shut down or short of something | never; 0 when none was
--@ failed | of them, those that ended with an error by themselves, or by the pod's own deadline | never; 0 when none did
--@ cut_off | of them, those that were deleted unfinished with or for their Job: its end, deadline or suspension, fewer pods wanted, its deletion | never; 0 when none was
--@ disrupted_s | seconds that the disrupted ones had held a node: work that had to begin anew | never; 0 when none was lost
--@ failed_s | seconds that the failed ones had held a node | never; 0 when none was lost
--@ cut_off_s | seconds that the pods that were cut off had held a node | never; 0 when none was lost
--@ disrupted_by | who disrupted them: by the condition DisruptionTarget, else `ended_by` in `attempts` | none was disrupted
--@ succeeded | whether a pod of the index succeeded | never
CREATE VIEW lost_work AS
WITH
marked AS (
  SELECT trace, uid AS pod_uid, arg_max(disrupter(list_filter(conditions, lambda c: c.type = 'DisruptionTarget')[1].reason),
                                        _order) AS disrupter
  FROM internal._states
  WHERE stream = 'pods' AND len(list_filter(
    conditions, lambda c: c.type = 'DisruptionTarget' AND c.status = 'True')) > 0
  GROUP BY trace, uid
),
fates AS (
  SELECT trace, namespace, job, job_uid, index, pod_s, phase, coalesce(disrupter, ended_by) AS ended_by,
         CASE WHEN phase = 'Succeeded' OR ended_by IS NULL THEN NULL
              WHEN marked.pod_uid IS NOT NULL THEN 'disrupted'
              WHEN ended_by = 'container' OR reason = 'DeadlineExceeded' THEN 'failed'
              WHEN ended_by IN ('job-controller', 'cronjob-controller', 'garbage-collector', 'namespace-controller',
                                'ttl-after-finished-controller') THEN 'cut off'
              ELSE 'disrupted' END AS loss
  FROM attempts
  LEFT JOIN marked USING (trace, pod_uid)
)
SELECT trace, namespace, job, job_uid, index, count(*) AS pods,
       count(*) FILTER (loss = 'disrupted') AS disrupted, count(*) FILTER (loss = 'failed') AS failed,
       count(*) FILTER (loss = 'cut off') AS cut_off,
       coalesce(sum(pod_s) FILTER (loss = 'disrupted'), 0) AS disrupted_s,
       coalesce(sum(pod_s) FILTER (loss = 'failed'), 0) AS failed_s,
       coalesce(sum(pod_s) FILTER (loss = 'cut off'), 0) AS cut_off_s,
       list_sort(list(DISTINCT ended_by) FILTER (loss = 'disrupted')) AS disrupted_by,
       coalesce(bool_or(phase = 'Succeeded'), false) AS succeeded
FROM fates
GROUP BY trace, namespace, job, job_uid, index
HAVING count(loss) > 0
ORDER BY disrupted_s DESC, failed_s DESC, trace, namespace, job, index;
