--- One row per Job, and index if it has them, of which a failed pod was replaced.
--? What was tried again, how often, and what did it cost?
--@ trace | name of the trace | never
--@ namespace | the Job's namespace | never
--@ job | the Job's name | never
--@ job_uid | its uid | never
--@ index | completion index | pods of NonIndexed Jobs
--@ retries | pods that failed and were followed by another | never
--@ waited_s | time in which a failed pod had no successor yet, seconds | never
--@ exit_codes | exit codes of the pods, in order; null where no container ended | never
--@ outcome | how the Job ended, as in `jobs` | never
--= outcome | Complete, Failed, Deleted, Suspended, Running, Pending
CREATE VIEW retries AS
WITH
waited AS (
  SELECT trace, namespace, job_uid, index, sum(pods)::BIGINT AS retries, sum(wait_s) AS waited_s
  FROM backoffs
  GROUP BY ALL
),
codes AS (
  SELECT trace, namespace, job, job_uid, index, list(exit_code ORDER BY attempt) AS exit_codes
  FROM attempts
  GROUP BY ALL
)
SELECT waited.trace, waited.namespace, codes.job, waited.job_uid, waited.index, retries, waited_s,
       exit_codes, outcome
FROM waited
JOIN codes
  ON codes.trace = waited.trace AND codes.namespace = waited.namespace
  AND codes.job_uid = waited.job_uid AND codes.index IS NOT DISTINCT FROM waited.index
JOIN (SELECT trace, namespace, job_uid, outcome FROM jobs) AS jobs
  ON jobs.trace = waited.trace AND jobs.namespace = waited.namespace
  AND jobs.job_uid = waited.job_uid
ORDER BY retries DESC, waited_s DESC;
