--- One row per CronJob: its last run that completed, and what came after.
--? When did each CronJob last succeed?
--@ trace | name of the trace | never
--@ namespace | the CronJob's namespace | never
--@ cronjob | the CronJob's name | never
--@ cronjob_uid | the CronJob's uid | absent in the object
--@ schedule | `.spec.schedule` | absent in the object
--@ last_success_at | the later of `.status.lastSuccessfulTime` and the completionTime of its Jobs that were seen, UTC | no success is known
--@ last_job | its last Job that was seen to complete | none was
--@ since_s | from the last success to the end of the trace, seconds | no success is known
--@ failed_since | Jobs that failed after it; all of them where no success is known | never; 0 when none did
--@ last_failure_reason | reason of the last Job that failed after it | none did
--@ running | Jobs that are unfinished at the end of the trace | never; 0 when there are none
CREATE VIEW last_success AS
WITH
runs AS (
  SELECT runs.trace, runs.namespace, cronjob_uid, runs.job, coalesce(finish.type, jobs.outcome) AS outcome,
         finish.reason AS reason, utc(finished_ns(completion_ns, finish)) AS finished_at
  FROM internal._cron_runs AS runs
  JOIN (SELECT trace, namespace, job_uid, outcome FROM jobs) AS jobs
    USING (trace, namespace, job_uid)
),
completed AS (
  SELECT trace, namespace, cronjob_uid, max(finished_at) AS finished_at,
         arg_max(job, finished_at) AS last_job
  FROM runs
  WHERE outcome = 'Complete'
  GROUP BY ALL
),
known AS (
  SELECT cronjobs.trace, cronjobs.namespace, cronjobs.cronjob, cronjob_uid, schedule, last_job,
         greatest(last_success_at, finished_at) AS last_success_at
  FROM internal._cronjobs AS cronjobs
  LEFT JOIN completed USING (trace, namespace, cronjob_uid)
),
others AS (
  SELECT trace, namespace, cronjob_uid, outcome, reason, finished_at
  FROM runs
  WHERE outcome <> 'Complete'
)
SELECT known.trace, known.namespace, known.cronjob, cronjob_uid, schedule, last_success_at, last_job,
       epoch(any_value(trace_end_at) - last_success_at) AS since_s,
       count(*) FILTER (fails_since) AS failed_since,
       arg_max(reason, finished_at) FILTER (fails_since) AS last_failure_reason,
       count(*) FILTER (outcome IN ('Running', 'Pending')) AS running
FROM (
  SELECT known.*, outcome, reason, finished_at,
         coalesce(outcome = 'Failed' AND (last_success_at IS NULL OR finished_at > last_success_at), false)
           AS fails_since
  FROM known
  LEFT JOIN others USING (trace, namespace, cronjob_uid)
) AS known
JOIN (SELECT trace, utc(trace_end_ns) AS trace_end_at FROM internal._ends) AS ends
  USING (trace)
GROUP BY known.trace, known.namespace, known.cronjob, cronjob_uid, schedule, last_success_at, last_job
ORDER BY last_success_at NULLS FIRST;
