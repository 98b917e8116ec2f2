--- One row per Job that a CronJob owned at any time, released ones too.
CREATE VIEW internal._cron_runs AS
SELECT trace, namespace, uid AS job_uid, max(cronjob) AS cronjob,
       max(owner_uid) FILTER (owner_kind = 'CronJob') AS cronjob_uid,
       any_value(name) AS job,
       arg_max(finished_condition(conditions), _order) AS finish,
       max(completion_ns) AS completion_ns
FROM internal._states
WHERE stream = 'jobs'
GROUP BY trace, namespace, uid
HAVING max(cronjob) IS NOT NULL;
