--- One row per Job that failed: the condition's reason and message, and the first pod that failed.
--? What failed, when, and why?
--@ trace | name of the trace | never
--@ namespace | the Job's namespace | never
--@ job | the Job's name | never
--@ job_uid | its uid | never
--@ cronjob | the CronJob that owns it | no CronJob does
--@ failed_at | when the Job failed, UTC | never
--@ reason | reason of the condition Failed | none was given
--@ message | message of that condition | none was given
--@ pods | pods of the Job that were seen | never; 0 when there were none
--@ pods_failed | of them, those that failed | never; 0 when there were none
--@ first_pod | the pod that failed first | none was seen to fail
--@ first_reason | its reason, like Error, OOMKilled or Evicted | none was seen to fail, or none was given
--@ first_exit_code | its exit code | none was seen to fail, or no container ended
--@ first_message | its status or termination message | none was seen to fail, or none was given
--@ exit_codes | the exit codes of its failed pods, each with how many ended so | never; empty when there were none
--@ duration_s | from the Job's start to its failure, seconds | it was not started
--@ backoff_s | lost to back-off of it, summed over indexes, which wait side by side | never
CREATE VIEW failures AS
WITH
failed_pods AS (
  SELECT trace, namespace, job_uid, pod, reason, exit_code, message,
         coalesce(finished_at, gone_at) AS ended_at
  FROM attempts
  WHERE phase = 'Failed'
),
firsts AS (
  SELECT trace, namespace, job_uid,
         first({'pod': pod, 'reason': reason, 'exit_code': exit_code, 'message': message}
               ORDER BY ended_at, pod) AS one,
         histogram(exit_code) AS exit_codes
  FROM failed_pods
  GROUP BY ALL
)
SELECT jobs.trace, jobs.namespace, jobs.job, jobs.job_uid, cronjob, jobs.finished_at AS failed_at,
       jobs.reason, jobs.message, pods, pods_failed, one.pod AS first_pod, one.reason AS first_reason,
       one.exit_code AS first_exit_code, one.message AS first_message,
       coalesce(firsts.exit_codes, MAP {}) AS exit_codes,
       duration_s, backoff_s
FROM jobs
LEFT JOIN firsts USING (trace, namespace, job_uid)
WHERE outcome = 'Failed'
ORDER BY failed_at;
