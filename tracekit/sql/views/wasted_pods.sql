--- One row per Job whose pods held nodes for nothing: they failed, were deleted before they had
--- ended, or the whole Job failed.
--? Where were pod-seconds wasted?
--@ trace | name of the trace | never
--@ namespace | the Job's namespace | never
--@ job | the Job's name | never
--@ job_uid | its uid | never
--@ outcome | how the Job ended, as in `jobs` | never
--@ pods | pods that were wasted | never
--@ pod_s | seconds in which all its pods held nodes | never
--@ wasted_pod_s | of them, those of the wasted pods | never
--@ failed_pod_s | of these, pods that failed | never; 0 when none did
--@ deleted_pod_s | of these, pods that were deleted before they had ended | never; 0 when none was
--@ in_vain_pod_s | of these, pods that succeeded in a Job that failed | never; 0 when none did
--@ share | wasted_pod_s by pod_s | no pod held a node
--= outcome | Complete, Failed, Deleted, Suspended, Running, Pending
CREATE VIEW wasted_pods AS
WITH
fates AS (
  SELECT attempts.trace, attempts.namespace, attempts.job, attempts.job_uid, jobs.outcome,
         coalesce(pod_s, 0) AS pod_s,
         CASE WHEN phase = 'Failed' THEN 'failed'
              WHEN phase IS DISTINCT FROM 'Succeeded' AND deletion_at IS NOT NULL THEN 'deleted'
              WHEN phase = 'Succeeded' AND jobs.outcome = 'Failed' THEN 'in vain' END AS waste
  FROM attempts
  JOIN (SELECT trace, namespace, job_uid, outcome FROM jobs) AS jobs
    USING (trace, namespace, job_uid)
)
SELECT trace, namespace, job, job_uid, outcome,
       count(*) FILTER (waste IS NOT NULL) AS pods,
       sum(pod_s) AS pod_s,
       coalesce(sum(pod_s) FILTER (waste IS NOT NULL), 0) AS wasted_pod_s,
       coalesce(sum(pod_s) FILTER (waste = 'failed'), 0) AS failed_pod_s,
       coalesce(sum(pod_s) FILTER (waste = 'deleted'), 0) AS deleted_pod_s,
       coalesce(sum(pod_s) FILTER (waste = 'in vain'), 0) AS in_vain_pod_s,
       wasted_pod_s / nullif(sum(pod_s), 0) AS share
FROM fates
GROUP BY trace, namespace, job, job_uid, outcome
HAVING count(*) FILTER (waste IS NOT NULL) > 0
ORDER BY wasted_pod_s DESC;
