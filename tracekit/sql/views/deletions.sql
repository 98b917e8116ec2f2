--- One row per CronJob, Job or pod of a Job that was deleted: by whom, by which rule.
--- An audit log names who asked; without one, what no Event or condition tells is inferred from the
--- objects around, and says so. Of a log without bodies a request for a Job or CronJob is a row, too.
--? Who deleted it, and by which rule?
--@ trace | name of the trace | never
--@ kind | CronJob, Job or Pod | never
--@ namespace | the object's namespace | never
--@ name | the object's name | never
--@ uid | its uid | absent in the object, or the log has no body of it
--@ job | the Job that the object is or belonged to | CronJobs
--@ deletion_at | when it was first seen with a deletionTimestamp, or gone, UTC | no time was known yet
--@ gone_at | when its DELETED was received | it was there at the end
--@ going_s | between the two, seconds | it was there at the end
--@ deleted_by | job-controller, cronjob-controller, ttl-after-finished-controller, garbage-collector, namespace-controller, eviction (through its API), kube-scheduler (preemption), taint-eviction-controller, pod-garbage-collector, or user: somebody else asked for it, or no rule of a controller leads to it; unknown: Events, or the Job of a pod, were not seen then | never
--@ actor | the user whose request it was, as the audit log has it | the trace has no audit log, or the request is not in it
--@ delete_evidence | the request, the Event, the condition or the rule from which that is known | never
--= kind | CronJob, Job, Pod
--= deleted_by | job-controller, cronjob-controller, ttl-after-finished-controller, garbage-collector, namespace-controller, eviction, kube-scheduler, taint-eviction-controller, pod-garbage-collector, user, unknown
CREATE VIEW deletions AS
SELECT trace,
       (CASE stream WHEN 'pods' THEN 'Pod' WHEN 'jobs' THEN 'Job' ELSE 'CronJob' END) COLLATE NOCASE AS kind,
       namespace, name, uid, job, utc(deletion_ns) AS deletion_at, utc(gone_ns) AS gone_at,
       seconds_between(deletion_ns, gone_ns) AS going_s, deleted_by COLLATE NOCASE AS deleted_by, actor, delete_evidence
FROM internal._deletions
UNION ALL
SELECT trace, CASE stream WHEN 'jobs' THEN 'Job' ELSE 'CronJob' END, namespace, name, NULL, job,
       utc(recv_ns), NULL, NULL, coalesce(deleter_of(actor), 'unknown'), actor,
       concat_ws('', 'audit log: ', verb, ' by ', actor, ' (' || actor_agent || ')', ', without a body')
FROM internal._rows AS r
WHERE type = 'CALL' AND verb = 'delete' AND code < 400 AND stream IN ('jobs', 'cronjobs')
  AND name IS NOT NULL AND actor IS NOT NULL
  AND NOT EXISTS (
    FROM internal._states AS s
    WHERE s.trace = r.trace AND s.stream = r.stream AND s.namespace = r.namespace AND s.name = r.name
  )
ORDER BY deletion_at;
