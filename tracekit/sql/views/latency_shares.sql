--- One row per namespace, owner, outcome and part of a Job's way: how long that part took, and whose it was.
--? Whose were the delays: the controllers', the scheduler's or the kubelet's, by namespace and owner?
--@ trace | name of the trace | never
--@ namespace | the Jobs' namespace | never
--@ cronjob | the CronJob that owns them | no CronJob does
--@ outcome | how they ended, as in `jobs` | never
--@ part | the column of `latency` that it is about, without `_s` | never
--@ whose | who had that part in hand | never
--@ jobs | Jobs in which that part was seen | never
--@ p50_s | median, seconds | never
--@ p95_s | 95th percentile, seconds | never
--@ max_s | longest, seconds | never
--@ share | its part of all time that was seen of these Jobs, 0 to 1 | they took no time
--= outcome | Complete, Failed, Deleted, Suspended, Running, Pending
--= part | created, first_pod, scheduled, running, work, backoff, accounting
--= whose | CronJob controller, Job controller, scheduler, kubelet, containers, back-off
CREATE VIEW latency_shares AS
WITH
alone AS (
  SELECT * REPLACE (greatest(work_s - coalesce(backoff_s, 0), 0) AS work_s) FROM latency
),
parts AS (
  SELECT * FROM alone
  UNPIVOT (seconds FOR part IN (created_s, first_pod_s, scheduled_s, running_s, work_s, backoff_s, accounting_s))
),
summed AS (
  SELECT trace, namespace, cronjob, outcome, part, count(*) AS jobs,
         quantile_cont(seconds, 0.5) AS p50_s, quantile_cont(seconds, 0.95) AS p95_s,
         max(seconds) AS max_s, sum(seconds) AS total_s
  FROM parts
  GROUP BY ALL
)
SELECT trace, namespace, cronjob, outcome, regexp_replace(part, '_s$', '') COLLATE NOCASE AS part,
       CASE part WHEN 'created_s' THEN 'CronJob controller' WHEN 'scheduled_s' THEN 'scheduler'
                 WHEN 'running_s' THEN 'kubelet' WHEN 'work_s' THEN 'containers'
                 WHEN 'backoff_s' THEN 'back-off' ELSE 'Job controller' END COLLATE NOCASE AS whose,
       jobs, p50_s, p95_s, max_s,
       total_s / nullif(sum(total_s) OVER (PARTITION BY trace, namespace, cronjob, outcome), 0) AS share
FROM summed
ORDER BY trace, namespace, cronjob, outcome, share DESC;
