--- One row per time at which a Job's status went back, or counted pods that had not ended.
--? Where did a status go backwards, or count too much?
--@ trace | name of the trace | never
--@ seen_at | when the revision was received, UTC | no time was known yet
--@ namespace | the Job's namespace | never
--@ job | the Job's name | never
--@ job_uid | its uid | never
--@ rv | the revision | absent or not a number
--@ field | succeeded, failed, or the condition that was taken back | never
--@ before | the number in the revision before; a condition counts as 1 | never
--@ after | the number now | never
--@ ended | pods of the Job that were seen to end so by this revision; deleted ones count as failed | never
--@ what | back: less than before; too-many: more since the record began than pods ended | never
--= what | back, too-many
--= field | succeeded, failed, Complete, Failed
CREATE VIEW count_jumps AS
WITH
counts AS (
  SELECT trace, recv_ns, namespace, name AS job, uid AS job_uid, rv, _order, seq,
         unnest([
           {'field': 'succeeded', 'n': coalesce(succeeded, 0)},
           {'field': 'failed', 'n': coalesce(failed, 0)},
           {'field': 'Complete', 'n': coalesce((finished_condition(conditions).type = 'Complete')::INT, 0)},
           {'field': 'Failed', 'n': coalesce((finished_condition(conditions).type = 'Failed')::INT, 0)}
         ]) AS value
  FROM internal._states
  WHERE stream = 'jobs'
),
stepped AS (
  SELECT *, value.field AS field, value.n AS after,
         lag(value.n) OVER w AS before, first_value(value.n) OVER w AS first
  FROM counts
  WINDOW w AS (PARTITION BY trace, namespace, job_uid, value.field ORDER BY _order, seq)
),
changed AS (
  SELECT *, row_number() OVER () AS row FROM stepped WHERE after <> before
),
with_ends AS (
  SELECT changed.* EXCLUDE (value),
         count(pod_uid) FILTER (
           CASE field WHEN 'succeeded' THEN succeeded_rv WHEN 'failed' THEN failed_rv END <= changed.rv
         ) AS ended
  FROM changed
  LEFT JOIN internal._pods AS pods
    ON pods.trace = changed.trace AND pods.namespace = changed.namespace
    AND pods.job_uid = changed.job_uid
  GROUP BY ALL
)
SELECT trace, utc(recv_ns) AS seen_at, namespace, job, job_uid, rv, field COLLATE NOCASE AS field, before, after, ended,
       (CASE WHEN after < before THEN 'back' ELSE 'too-many' END) COLLATE NOCASE AS what
FROM with_ends
WHERE after < before OR (field IN ('succeeded', 'failed') AND after - first > ended)
ORDER BY seen_at;
