--- One row per time at which a CronJob was due while it was recorded, and what became of it.
--@ trace | name of the trace | never
--@ namespace | the CronJob's namespace | never
--@ cronjob | the CronJob's name | never
--@ cronjob_uid | the CronJob's uid | absent in the object
--@ due_at | when the schedule in force fired, UTC | never
--@ outcome | started, skipped (the concurrency policy), suspended, missed (never started), pending (due just before the end) or unknown (Jobs or CronJobs were not seen then) | never
--@ policy | what decided: Allow, Forbid, Replace, suspend, startingDeadlineSeconds, most-recent-only (a later start was made instead), no-leader, too-many-missed (Event FailedNeedsStart), never-due (by the rules no time of this schedule ever is), name-taken (a Job of that name was there before it was due), deleted (the CronJob went at once), gap | nothing in the record explains it
--@ job | the Job that was started for it | it was not started
--@ started_at | that Job's creationTimestamp, UTC | it was not started
--@ delay_s | from due_at to the Job's creation, seconds | it was not started
--@ schedule | the schedule in force, with its time zone | never
--@ why | the same in words, with the numbers | never
--= outcome | started, skipped, suspended, missed, pending, unknown
--= policy | Allow, Forbid, Replace, suspend, startingDeadlineSeconds, most-recent-only, no-leader, too-many-missed, never-due, name-taken, deleted, gap
CREATE VIEW cron_ticks AS
SELECT trace, namespace, cronjob, cronjob_uid, utc(due_ns) AS due_at,
       outcome COLLATE NOCASE AS outcome, policy COLLATE NOCASE AS policy, job,
       utc(started_ns) AS started_at, seconds_between(due_ns, started_ns) AS delay_s, schedule, why
FROM internal._cron_ticks;
