--- The columns of `cronjobs` that the trace itself tells.
CREATE VIEW internal._cronjobs AS
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
