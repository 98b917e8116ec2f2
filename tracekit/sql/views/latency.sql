--- One row per Job: how long each part of its way took, from its due time to the condition.
--? How long did each part of a Job's way take: controller, scheduler, kubelet, work?
--@ trace | name of the trace | never
--@ namespace | the Job's namespace | never
--@ job | the Job's name | never
--@ job_uid | its uid | never
--@ cronjob | the CronJob that owns it | no CronJob does
--@ outcome | as in `jobs` | never
--@ created_s | from the time at which its CronJob was due to its creation, seconds: the CronJob controller's | no CronJob started it, or not seen
--@ first_pod_s | from its creation to its first pod, seconds, by receipt where both were watched: the Job controller's | no pod was seen
--@ scheduled_s | from its first pod to the first sight of a pod with a node, seconds: the scheduler's | no pod was seen bound
--@ running_s | from then to the first sight of a pod that runs, or that ended and was not seen to run, seconds: the kubelet's | no pod was seen running
--@ work_s | from then to the end of its last pod, seconds, back-off with it | no pod was seen to end
--@ backoff_s | of that, time lost to back-off, seconds, as in `jobs` | 0 when no failed pod was replaced
--@ accounting_s | from there to the condition Complete or Failed, seconds: the Job controller's | not finished, or a pod outlived it
CREATE VIEW latency AS
WITH
ways AS (
  SELECT trace, namespace, job_uid, min(appeared_ns) AS pod_ns, min(bound_ns) AS bound_ns,
         min(coalesce(running_ns, ended_ns)) AS running_ns, max(ended_ns) AS ended_ns
  FROM internal._pods
  GROUP BY ALL
),
seen AS (
  SELECT trace, namespace, uid AS job_uid,
         coalesce(min(recv_ns) FILTER (type = 'ADDED'), min(created_ns)) AS created_ns
  FROM internal._states
  WHERE stream = 'jobs'
  GROUP BY ALL
),
due AS (
  SELECT trace, namespace, cronjob, job, any_value(delay_s) AS delay_s
  FROM cron_ticks
  WHERE job IS NOT NULL
  GROUP BY ALL
)
SELECT jobs.trace, jobs.namespace, jobs.job, jobs.job_uid, jobs.cronjob, jobs.outcome,
       delay_s AS created_s,
       seconds_between(created_ns, pod_ns) AS first_pod_s,
       seconds_between(pod_ns, bound_ns) AS scheduled_s,
       seconds_between(bound_ns, running_ns) AS running_s,
       seconds_between(running_ns, ended_ns) AS work_s,
       backoff_s, accounting_s
FROM jobs
LEFT JOIN ways USING (trace, namespace, job_uid)
LEFT JOIN seen USING (trace, namespace, job_uid)
LEFT JOIN due
  ON due.trace = jobs.trace AND due.namespace = jobs.namespace AND due.job = jobs.job
  AND due.cronjob = jobs.cronjob
ORDER BY jobs.trace, created_at, jobs.namespace, jobs.job;
