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
--@ actor | job-controller, cronjob-controller, or the field manager that wrote; of a deletion as in `deletions` | the record does not tell
--@ evidence | from what the actor is known | the record does not tell
--= action | pod-create, pod-delete, finalizer-removal, pod-adopt, pod-release, status-update, job-create, job-delete, job-update, cronjob-create, cronjob-delete, cronjob-update, cronjob-status
--= kind | CronJob, Job, Pod
CREATE VIEW actions AS
WITH
orphans AS (
  SELECT uid FROM internal._states WHERE stream = 'pods' AND type <> 'DELETED' AND job IS NULL
),
pod_states AS (
  SELECT trace, seq, recv_ns, namespace, name, uid, rv, job, _order,
         type = 'ADDED' AS added,
         type = 'DELETED' AS gone,
         type = 'DELETED' OR deleted_ns IS NOT NULL AS going,
         coalesce(list_contains(finalizers, 'batch.kubernetes.io/job-tracking'), false) AS tracked,
         -- Told of a pod's first row and of its adoption only.
         CASE WHEN type = 'ADDED' OR (type <> 'DELETED' AND uid IN (SELECT uid FROM orphans))
              THEN newest_manager(managers, '') END AS manager
  FROM internal._states
  WHERE stream = 'pods'
),
pods AS (
  SELECT *,
         lag(true, 1, false) OVER w AS known,
         lag(going) OVER w AS was_going,
         lag(tracked) OVER w AS was_tracked,
         lag(job) OVER w AS was_job
  FROM pod_states
  WINDOW w AS (PARTITION BY uid, namespace, trace ORDER BY _order, seq)
),
pod_writes AS (
  SELECT *, unnest([
           CASE WHEN added AND NOT known THEN 'pod-create'
                WHEN known AND going AND NOT was_going THEN 'pod-delete' END,
           CASE WHEN NOT known THEN NULL
                WHEN NOT gone AND job IS NOT NULL AND was_job IS NULL THEN 'pod-adopt'
                WHEN NOT gone AND job IS NULL THEN 'pod-release'
                WHEN was_tracked AND (NOT tracked OR gone) THEN 'finalizer-removal' END
         ]) AS action
  FROM pods
  WHERE coalesce(job, was_job) IS NOT NULL
    AND (NOT known OR going <> was_going OR tracked <> was_tracked OR gone
         OR job IS DISTINCT FROM was_job)
),
other_states AS (
  SELECT trace, seq, recv_ns, 'Job' AS kind, namespace, name, uid, rv, cronjob, _order,
         type = 'ADDED' AS added,
         type = 'MODIFIED' AS modified,
         type = 'DELETED' AS gone,
         type = 'DELETED' OR deleted_ns IS NOT NULL AS going,
         newest_manager(managers, '') AS editor,
         newest_manager(managers, 'status') AS status_writer,
         hash(spec, labels, annotations, CASE WHEN deleted_ns IS NULL THEN finalizers END) AS edited,
         hash(
           {status fields}, conditions,
           observed_status
         ) AS state
  FROM internal._states
  WHERE stream = 'jobs'
  UNION ALL
  SELECT trace, seq, recv_ns, 'CronJob' AS kind, namespace, name, uid, rv, cronjob, _order,
         type = 'ADDED', type = 'MODIFIED', type = 'DELETED',
         type = 'DELETED' OR deleted_ns IS NOT NULL,
         newest_manager(managers, ''),
         newest_manager(managers, 'status'),
         hash(spec, labels, annotations, CASE WHEN deleted_ns IS NULL THEN finalizers END),
         hash(cron_active, last_schedule_ns, last_successful_ns, observed_status)
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
  WINDOW w AS (PARTITION BY uid, namespace, trace, kind ORDER BY _order, seq)
),
other_writes AS (
  SELECT *, unnest([
           CASE WHEN added AND NOT known THEN 'create'
                WHEN known AND going AND NOT was_going THEN 'delete' END,
           CASE WHEN known AND modified AND state <> was_state THEN 'status' END,
           CASE WHEN known AND modified AND edited <> was_edited AND going = was_going
                THEN 'update' END
         ]) AS verb
  FROM others
),
writes AS (
  SELECT trace, seq, recv_ns, 'Pod' AS kind, namespace, name, uid, rv,
         coalesce(job, was_job) AS job, NULL::VARCHAR AS cronjob, action,
         CASE WHEN NOT known OR was_job IS NULL THEN manager END AS manager
  FROM pod_writes
  WHERE action IS NOT NULL
  UNION ALL
  SELECT trace, seq, recv_ns, kind, namespace, name, uid, rv,
         CASE WHEN kind = 'Job' THEN name END, cronjob,
         CASE WHEN kind = 'CronJob' THEN 'cronjob-' || verb
              WHEN verb = 'status' THEN 'status-update'
              ELSE 'job-' || verb END,
         CASE WHEN gone OR verb = 'delete' THEN NULL
              WHEN verb = 'status' THEN status_writer
              ELSE editor END
  FROM other_writes
  WHERE verb IS NOT NULL
),
told AS (
  SELECT trace, namespace,
         CASE
           WHEN starts_with(plain, 'Created pod: ') THEN 'pod-create'
           WHEN starts_with(plain, 'Deleted pod: ') THEN 'pod-delete'
           WHEN starts_with(plain, 'Created job ') THEN 'job-create'
           WHEN starts_with(plain, 'Deleted job ') THEN 'job-delete'
         END AS action,
         regexp_extract(plain, '^\w+ \w+:? (\S+)$', 1) AS object,
         any_value(component) AS component,
         any_value(reason) AS reason
  FROM (SELECT trace, namespace, stream, component, reason,
               regexp_replace(message, '^\(combined from similar events\): ', '') AS plain
        FROM internal._rows)
  WHERE stream = 'events' AND reason IN ('SuccessfulCreate', 'SuccessfulDelete')
    AND component IN ('job-controller', 'cronjob-controller')
  GROUP BY ALL
),
known AS (
  SELECT writes.*, told.component, told.reason AS told_by, deletions.deleted_by,
         deletions.delete_evidence
  FROM writes
  LEFT JOIN told
    ON told.trace = writes.trace AND told.namespace = writes.namespace
    AND told.action = writes.action AND told.object = writes.name
  LEFT JOIN internal._deletions AS deletions
    ON deletions.trace = writes.trace AND deletions.uid = writes.uid
    AND writes.action IN ('pod-delete', 'job-delete', 'cronjob-delete')
)
SELECT trace, seq, utc(recv_ns) AS seen_at, action COLLATE NOCASE AS action, namespace, job, cronjob,
       kind COLLATE NOCASE AS kind, name AS object, uid, rv,
       CASE
         WHEN component IS NOT NULL THEN component
         WHEN deleted_by IS NOT NULL THEN deleted_by
         WHEN is_controller_manager(manager) THEN CASE
           WHEN kind = 'CronJob' OR action = 'job-create' THEN 'cronjob-controller'
           ELSE 'job-controller' END
         WHEN manager IS NOT NULL THEN manager
         WHEN action = 'finalizer-removal' THEN 'job-controller'
       END AS actor,
       CASE
         WHEN component IS NOT NULL THEN 'Event ' || told_by
         WHEN deleted_by IS NOT NULL THEN delete_evidence
         WHEN manager IS NOT NULL THEN 'managedFields: ' || manager
         WHEN action = 'finalizer-removal' THEN 'inferred: the finalizer is the Job controller''s'
       END AS evidence
FROM known;
