--- One row per failed pod that a later pod of the same Job (and index) followed.
CREATE VIEW internal._replacements AS
WITH
changes AS (
  SELECT trace, namespace, job_uid, index, appeared_ns AS ns, appeared_ns, false AS failure
  FROM internal._pods WHERE job_uid IN (SELECT job_uid FROM internal._pods WHERE failed_ns IS NOT NULL)
  UNION ALL
  SELECT trace, namespace, job_uid, index, failed_ns, NULL, true
  FROM internal._pods WHERE failed_ns IS NOT NULL
),
followed AS (
  SELECT *,
         min(appeared_ns) OVER (
           PARTITION BY trace, namespace, job_uid, index ORDER BY ns, failure
           ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
         ) AS next_ns
  FROM changes
)
SELECT trace, namespace, job_uid, index, ns AS failed_ns, next_ns,
       (next_ns - ns) / 1e9 AS wait_s,
       row_number() OVER (
         PARTITION BY trace, namespace, job_uid, index, next_ns ORDER BY ns
       ) = 1 AS first_of_wait
FROM followed
WHERE failure AND next_ns IS NOT NULL;
