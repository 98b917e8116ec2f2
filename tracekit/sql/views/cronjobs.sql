--- One row per CronJob (per uid), as it was last seen; those that never had a Job too.
--? Which CronJobs are there, what do they say now, and what came of them?
--@ trace | name of the trace | never
--@ namespace | `.metadata.namespace` | never
--@ cronjob | `.metadata.name` | never
--@ cronjob_uid | `.metadata.uid` | absent in the object
--@ schedule | `.spec.schedule` | absent in the object
--@ time_zone | `.spec.timeZone` | the controller manager's own
--@ suspended | `.spec.suspend` | absent in the object
--@ concurrency_policy | `.spec.concurrencyPolicy` | absent in the object
--@ starting_deadline_s | `.spec.startingDeadlineSeconds` | there is none
--@ successful_history | `.spec.successfulJobsHistoryLimit` | absent in the object
--@ failed_history | `.spec.failedJobsHistoryLimit` | absent in the object
--@ created_at | `.metadata.creationTimestamp`, UTC | absent in the object
--@ gone_at | when its DELETED was received | it was there at the end
--@ last_schedule_at | `.status.lastScheduleTime`, UTC | nothing was started yet
--@ last_success_at | `.status.lastSuccessfulTime`, UTC | no success yet, or before 1.21
--@ active | Jobs in `.status.active` | never; 0 when there are none
--@ jobs | its Jobs that were seen | never; 0 when there were none
--@ jobs_complete | of them, those that completed | never; 0 when there were none
--@ jobs_failed | of them, those that failed | never; 0 when there were none
--@ labels | `.metadata.labels` as a MAP | absent in the object
--@ annotations | `.metadata.annotations` as a MAP | absent in the object
--@ revisions | revisions of the CronJob that were seen | never
CREATE VIEW cronjobs AS
WITH
seen AS (
  SELECT trace, namespace, uid, arg_max(seq, _order) AS last_seq, count(DISTINCT rv) AS revisions,
         max(recv_ns) FILTER (type = 'DELETED') AS gone_ns
  FROM internal._states
  WHERE stream = 'cronjobs'
  GROUP BY ALL
),
counted AS (
  SELECT trace, namespace, cronjob_uid, count(*) AS jobs,
         count(*) FILTER (finish.type = 'Complete') AS jobs_complete,
         count(*) FILTER (finish.type = 'Failed') AS jobs_failed
  FROM internal._cron_runs
  GROUP BY ALL
)
SELECT states.trace, states.namespace, states.name AS cronjob, states.uid AS cronjob_uid,
       spec->>'$.schedule' AS schedule,
       spec->>'$.timeZone' AS time_zone,
       try_cast(spec->>'$.suspend' AS BOOLEAN) AS suspended,
       spec->>'$.concurrencyPolicy' AS concurrency_policy,
       try_cast(spec->>'$.startingDeadlineSeconds' AS BIGINT) AS starting_deadline_s,
       try_cast(spec->>'$.successfulJobsHistoryLimit' AS BIGINT) AS successful_history,
       try_cast(spec->>'$.failedJobsHistoryLimit' AS BIGINT) AS failed_history,
       utc(created_ns) AS created_at,
       utc(gone_ns) AS gone_at,
       utc(last_schedule_ns) AS last_schedule_at,
       utc(last_successful_ns) AS last_success_at,
       coalesce(len(cron_active), 0) AS active,
       coalesce(jobs, 0) AS jobs,
       coalesce(jobs_complete, 0) AS jobs_complete,
       coalesce(jobs_failed, 0) AS jobs_failed,
       try_cast(try_cast(labels AS JSON) AS MAP(VARCHAR, VARCHAR)) AS labels,
       try_cast(try_cast(annotations AS JSON) AS MAP(VARCHAR, VARCHAR)) AS annotations,
       revisions
FROM seen
JOIN internal._states AS states
  ON states.trace = seen.trace AND states.seq = seen.last_seq AND states.stream = 'cronjobs'
LEFT JOIN counted
  ON counted.trace = seen.trace AND counted.namespace = seen.namespace
  AND counted.cronjob_uid = seen.uid;
