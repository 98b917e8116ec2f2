--- One row per wait between the failure of pods and the next pod of the Job (and index), longest first.
--? Which back-off was longest, and what was it for?
--@ trace | name of the trace | never
--@ namespace | the Job's namespace | never
--@ job | the Job's name | never
--@ job_uid | its uid | never
--@ index | completion index | pods of NonIndexed Jobs
--@ failed_at | when the first of the pods was seen to fail, UTC | never
--@ next_at | when the next pod was created, UTC | never
--@ wait_s | between the two, seconds, by receipt | never
--@ pods | failed pods that the next one followed | never
--@ next_pod | the pod that ended the wait | never
CREATE VIEW backoffs AS
WITH
changes AS (
  SELECT trace, namespace, job, job_uid, index, appeared_ns AS ns, appeared_ns, pod, false AS failure
  FROM internal._pods
  UNION ALL
  SELECT trace, namespace, job, job_uid, index, failed_ns, NULL, NULL, true
  FROM internal._pods WHERE failed_ns IS NOT NULL
),
followed AS (
  SELECT *,
         min({'ns': appeared_ns, 'pod': pod}) FILTER (NOT failure) OVER (
           PARTITION BY trace, namespace, job_uid, index ORDER BY ns, failure
           ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
         ) AS next
  FROM changes
)
SELECT trace, namespace, any_value(job) AS job, job_uid, index, utc(min(ns)) AS failed_at,
       utc(next.ns) AS next_at, (next.ns - min(ns)) / 1e9 AS wait_s, count(*) AS pods,
       next.pod AS next_pod
FROM followed
WHERE failure AND next IS NOT NULL
GROUP BY trace, namespace, job_uid, index, next
ORDER BY wait_s DESC;
