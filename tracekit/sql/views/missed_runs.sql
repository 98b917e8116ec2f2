--- One row per due time of a CronJob for which no Job was started, and the rule that decided so.
--? Which runs did not happen, and why not?
--@ trace | name of the trace | never
--@ namespace | the CronJob's namespace | never
--@ cronjob | the CronJob's name | never
--@ cronjob_uid | the CronJob's uid | absent in the object
--@ due_at | when it was due, UTC | never
--@ outcome | missed, skipped, suspended or unknown: as in `cron_ticks` | never
--@ policy | what decided, as in `cron_ticks` | nothing in the record explains it
--@ why | the same in words, with the numbers | never
--= outcome | skipped, suspended, missed, unknown
--= policy | Forbid, Replace, suspend, startingDeadlineSeconds, most-recent-only, no-leader, too-many-missed, never-due, name-taken, gap
CREATE VIEW missed_runs AS
SELECT trace, namespace, cronjob, cronjob_uid, due_at, outcome, policy, why
FROM cron_ticks
WHERE outcome NOT IN ('started', 'pending')
ORDER BY due_at;
