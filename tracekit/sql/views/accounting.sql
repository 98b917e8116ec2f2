--- One row per finished Job: how long after its last pod's end the controller said so.
--? How long did it take from the last pod's end to Complete?
--@ trace | name of the trace | never
--@ namespace | the Job's namespace | never
--@ job | the Job's name | never
--@ job_uid | its uid | never
--@ outcome | Complete or Failed | never
--@ pods | pods of the Job that were seen | never; 0 when there were none
--@ last_pod_end_at | when its last pod was seen to end, UTC | no pod ended
--@ finish_seen_at | when the condition was first seen | never
--@ accounting_s | between the two, seconds, by receipt | a pod outlived the Job, or none ended
--= outcome | Complete, Failed
CREATE VIEW accounting AS
WITH
finishes AS (
  SELECT trace, namespace, uid AS job_uid, min(recv_ns) AS finish_ns
  FROM internal._states
  WHERE stream = 'jobs' AND finished_condition(conditions) IS NOT NULL
  GROUP BY ALL
)
SELECT jobs.trace, jobs.namespace, job, jobs.job_uid, outcome, pods, last_pod_end_at,
       utc(finish_ns) AS finish_seen_at, accounting_s
FROM jobs
JOIN finishes USING (trace, namespace, job_uid)
ORDER BY accounting_s DESC NULLS LAST;
