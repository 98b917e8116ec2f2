--- One row per write to a CronJob, a Job or a Job's pod that a controller or a user made.
--- What kubelet and scheduler write to pods is left out: see `pod_phases` and `conditions`.
--@ trace | name of the trace | never
--@ seq | position in the trace of the row that shows it | never
--@ seen_at | when it was received, UTC | no time was known yet
--@ action | pod-create, pod-delete, finalizer-removal, pod-adopt, pod-release, status-update, job-create, job-delete, job-update, cronjob-create, cronjob-delete, cronjob-update, cronjob-status | never
--@ namespace | namespace of the object | never
--@ job | the Job that the object is or belongs to | writes to CronJobs
--@ cronjob | the CronJob that the object is or belongs to | belongs to none
--@ kind | kind of the object written: CronJob, Job or Pod | never
--@ object | its name | never
--@ uid | its uid | absent in the object
--@ rv | the revision that the write made | absent or not a number
--@ actor | job-controller, cronjob-controller, or the field manager that wrote | the record does not tell
--@ evidence | from what the actor is known | the record does not tell
CREATE VIEW actions AS
WITH
pod_states AS (
  SELECT trace, seq, recv_ns, type, namespace, name, uid, rv, job, _order,
         CASE WHEN type <> 'DELETED' THEN newest_manager(managers, NULL) END AS manager,
         type = 'DELETED' OR deleted_ns IS NOT NULL AS going,
         coalesce(list_contains(finalizers, 'batch.kubernetes.io/job-tracking'), false) AS tracked
  FROM internal._states
  WHERE stream = 'pods'
),
pods AS (
  SELECT *, type = 'DELETED' AS gone,
         lag(true, 1, false) OVER w AS known,
         lag(going) OVER w AS was_going,
         lag(tracked) OVER w AS was_tracked,
         lag(job) OVER w AS was_job
  FROM pod_states
  WINDOW w AS (PARTITION BY trace, namespace, uid ORDER BY _order, seq)
),
pod_writes AS (
  SELECT trace, seq, recv_ns, 'pods' AS stream, type, namespace, name, uid, rv,
         coalesce(job, was_job) AS job, NULL::VARCHAR AS cronjob,
         CASE WHEN NOT known OR was_job IS NULL THEN manager END AS manager,
         unnest(CASE
           WHEN NOT known THEN CASE WHEN type = 'ADDED' THEN ['pod-create'] ELSE [] END
           ELSE list_filter([
             CASE WHEN going AND NOT was_going THEN 'pod-delete' END,
             CASE
               WHEN NOT gone AND job IS NOT NULL AND was_job IS NULL THEN 'pod-adopt'
               WHEN NOT gone AND job IS NULL THEN 'pod-release'
               WHEN was_tracked AND (NOT tracked OR gone) THEN 'finalizer-removal'
             END
           ], lambda action: action IS NOT NULL)
         END) AS action
  FROM pods
  WHERE coalesce(job, was_job) IS NOT NULL
    AND (NOT known OR going <> was_going OR tracked <> was_tracked OR gone
         OR job IS DISTINCT FROM was_job)
),
other_states AS (
  SELECT trace, seq, recv_ns, stream, type, namespace, name, uid, rv, job, cronjob, _order,
         newest_manager(managers, NULL) AS editor,
         newest_manager(managers, 'status') AS status_writer,
         type = 'DELETED' OR deleted_ns IS NOT NULL AS going,
         hash(spec, labels, annotations, CASE WHEN deleted_ns IS NULL THEN finalizers END) AS edited,
         hash(
           active, ready, succeeded, failed, terminating, start_ns, completion_ns,
           completed_indexes, failed_indexes, uncounted_succeeded, uncounted_failed, conditions,
           observed_status
         ) AS state
  FROM internal._states
  WHERE stream = 'jobs'
  UNION ALL
  SELECT trace, seq, recv_ns, stream, type, namespace, name, uid, rv, job, cronjob, _order,
         newest_manager(managers, NULL) AS editor,
         newest_manager(managers, 'status') AS status_writer,
         type = 'DELETED' OR deleted_ns IS NOT NULL AS going,
         hash(spec, labels, annotations, CASE WHEN deleted_ns IS NULL THEN finalizers END) AS edited,
         hash(
           cron_active, last_schedule_ns, last_successful_ns, observed_status
         ) AS state
  FROM internal._states
  WHERE stream = 'cronjobs'
),
others AS (
  SELECT *,
         lag(true, 1, false) OVER w AS known,
         lag(going) OVER w AS was_going,
         lag(edited) OVER w AS was_edited,
         lag(state) OVER w AS was_state
  FROM other_states
  WINDOW w AS (PARTITION BY trace, stream, namespace, uid ORDER BY _order, seq)
),
other_writes AS (
  SELECT trace, seq, recv_ns, stream, type, namespace, name, uid, rv, job, cronjob,
         unnest(CASE
           WHEN NOT known THEN CASE WHEN type = 'ADDED' THEN ['create'] ELSE [] END
           ELSE list_filter([
             CASE WHEN going AND NOT was_going THEN 'delete' END,
             CASE WHEN type = 'MODIFIED' AND state <> was_state THEN 'status' END,
             CASE WHEN type = 'MODIFIED' AND edited <> was_edited AND going = was_going
                  THEN 'update' END
           ], lambda action: action IS NOT NULL)
         END) AS verb,
         CASE
           WHEN type = 'DELETED' OR verb = 'delete' THEN NULL
           WHEN verb = 'status' THEN status_writer
           ELSE editor
         END AS manager
  FROM others
),
writes AS (
  SELECT trace, seq, recv_ns, stream, type, namespace, name, uid, rv, job, cronjob, manager, action
  FROM pod_writes
  UNION ALL
  SELECT trace, seq, recv_ns, stream, type, namespace, name, uid, rv, job, cronjob, manager,
         CASE WHEN stream = 'cronjobs' THEN 'cronjob-' || verb
              WHEN verb = 'status' THEN 'status-update'
              ELSE 'job-' || verb END
  FROM other_writes
),
told AS (
  SELECT trace, namespace,
         CASE
           WHEN starts_with(message, 'Created pod: ') THEN 'pod-create'
           WHEN starts_with(message, 'Deleted pod: ') THEN 'pod-delete'
           WHEN starts_with(message, 'Created job ') THEN 'job-create'
           WHEN starts_with(message, 'Deleted job ') THEN 'job-delete'
         END AS action,
         regexp_extract(message, '^\w+ \w+:? (\S+)$', 1) AS object,
         any_value(component) AS component,
         any_value(reason) AS reason
  FROM internal._rows
  WHERE stream = 'events' AND reason IN ('SuccessfulCreate', 'SuccessfulDelete')
    AND component IN ('job-controller', 'cronjob-controller')
  GROUP BY ALL
),
known AS (
  SELECT writes.*, told.component, told.reason AS told_by
  FROM writes
  LEFT JOIN told
    ON told.trace = writes.trace AND told.namespace = writes.namespace
    AND told.action = writes.action AND told.object = writes.name
)
SELECT trace, seq, utc(recv_ns) AS seen_at, action, namespace, job, cronjob,
       CASE stream WHEN 'pods' THEN 'Pod' WHEN 'jobs' THEN 'Job' ELSE 'CronJob' END AS kind,
       name AS object, uid, rv,
       CASE
         WHEN component IS NOT NULL THEN component
         WHEN is_controller_manager(manager) THEN CASE
           WHEN stream = 'cronjobs' OR action = 'job-create' THEN 'cronjob-controller'
           ELSE 'job-controller' END
         WHEN manager IS NOT NULL THEN manager
         WHEN action = 'finalizer-removal' THEN 'job-controller'
       END AS actor,
       CASE
         WHEN component IS NOT NULL THEN 'Event ' || told_by
         WHEN manager IS NOT NULL THEN 'managedFields: ' || manager
         WHEN action = 'finalizer-removal' THEN 'inferred: the finalizer is the Job controller''s'
       END AS evidence
FROM known;
