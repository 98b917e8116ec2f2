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
--@ schedule_notes | what `tracekit cron lint` says of the schedule, from the end of the trace on: `name`, `text` | nobody knows the version
--@ revisions | revisions of the CronJob that were seen | never
CREATE VIEW cronjobs AS
SELECT told.* EXCLUDE (revisions), noted.notes AS schedule_notes, told.revisions
FROM internal._cronjobs AS told
LEFT JOIN internal._schedule_notes AS noted
  ON noted.trace = told.trace AND noted.namespace = told.namespace
  AND noted.cronjob_uid = told.cronjob_uid;
