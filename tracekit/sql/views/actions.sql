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
revisions AS (
  SELECT trace, seq, recv_ns, stream, type, namespace, name, uid, rv, job, cronjob, kind,
         deleted_ns, owner_uid, managers,
         list_contains(finalizers, 'batch.kubernetes.io/job-tracking') AS tracked,
         CASE WHEN stream <> 'pods' THEN spec END AS spec,
         CASE WHEN stream <> 'pods' THEN labels END AS labels,
         CASE WHEN stream <> 'pods' THEN annotations END AS annotations,
         CASE WHEN stream <> 'pods' THEN finalizers END AS finalizers,
         CASE WHEN stream <> 'pods' THEN hash(
           active, ready, succeeded, failed, terminating, start_ns, completion_ns,
           completed_indexes, failed_indexes, uncounted_succeeded, uncounted_failed, conditions,
           cron_active, last_schedule_ns, last_successful_ns, observed_status
         ) END AS status,
         _order
  FROM internal._states
  WHERE stream IN ('jobs', 'cronjobs', 'pods')
),
paired AS (
  SELECT *, lag({
           'type': type, 'job': job, 'deleted_ns': deleted_ns, 'owner_uid': owner_uid,
           'managers': managers, 'tracked': tracked, 'spec': spec, 'labels': labels,
           'annotations': annotations, 'finalizers': finalizers, 'status': status
         }) OVER (
           PARTITION BY trace, stream, namespace, name, uid ORDER BY _order, seq
         ) AS p
  FROM revisions
),
writes AS (
  SELECT *, unnest(CASE stream
    WHEN 'pods' THEN CASE
      WHEN coalesce(job, p.job) IS NULL THEN []
      WHEN p IS NULL THEN CASE WHEN type = 'ADDED' THEN ['pod-create'] ELSE [] END
      ELSE list_filter([
        CASE WHEN p.deleted_ns IS NULL AND (deleted_ns IS NOT NULL OR type = 'DELETED')
             THEN 'pod-delete' END,
        CASE
          WHEN type <> 'DELETED' AND job IS NOT NULL AND p.job IS NULL THEN 'pod-adopt'
          WHEN type <> 'DELETED' AND job IS NULL THEN 'pod-release'
          WHEN p.tracked AND (NOT coalesce(tracked, false) OR type = 'DELETED')
          THEN 'finalizer-removal'
        END
      ], lambda action: action IS NOT NULL) END
    WHEN 'jobs' THEN CASE
      WHEN p IS NULL THEN CASE WHEN type = 'ADDED' THEN ['job-create'] ELSE [] END
      ELSE list_filter([
        CASE WHEN p.deleted_ns IS NULL AND (deleted_ns IS NOT NULL OR type = 'DELETED')
             THEN 'job-delete' END,
        CASE WHEN type = 'MODIFIED' AND status IS DISTINCT FROM p.status THEN 'status-update' END,
        CASE WHEN type = 'MODIFIED' AND (
          spec IS DISTINCT FROM p.spec OR labels IS DISTINCT FROM p.labels
          OR annotations IS DISTINCT FROM p.annotations
          OR finalizers IS DISTINCT FROM p.finalizers AND deleted_ns IS NULL
        ) THEN 'job-update' END
      ], lambda action: action IS NOT NULL) END
    ELSE CASE
      WHEN p IS NULL THEN CASE WHEN type = 'ADDED' THEN ['cronjob-create'] ELSE [] END
      ELSE list_filter([
        CASE WHEN p.deleted_ns IS NULL AND (deleted_ns IS NOT NULL OR type = 'DELETED')
             THEN 'cronjob-delete' END,
        CASE WHEN type = 'MODIFIED' AND status IS DISTINCT FROM p.status
             THEN 'cronjob-status' END,
        CASE WHEN type = 'MODIFIED' AND (
          spec IS DISTINCT FROM p.spec OR labels IS DISTINCT FROM p.labels
          OR annotations IS DISTINCT FROM p.annotations
        ) THEN 'cronjob-update' END
      ], lambda action: action IS NOT NULL) END
    END) AS action
  FROM paired
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
  SELECT writes.*, told.component, told.reason AS told_by,
         CASE
           WHEN writes.action IN ('pod-delete', 'job-delete', 'cronjob-delete')
                OR type = 'DELETED' THEN NULL
           WHEN writes.action IN ('status-update', 'cronjob-status')
           THEN coalesce(new_manager(managers, p.managers), last_status_manager(managers))
           ELSE new_manager(managers, p.managers)
         END AS manager
  FROM writes
  LEFT JOIN told
    ON told.trace = writes.trace AND told.namespace = writes.namespace
    AND told.action = writes.action AND told.object = writes.name
)
SELECT trace, seq, utc(recv_ns) AS seen_at, action, namespace, coalesce(job, p.job) AS job, cronjob,
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
