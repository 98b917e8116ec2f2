--- One row per revision of a Job: its status then, and what changed from the one before.
--@ trace | name of the trace | never
--@ seq | position in the trace | never
--@ seen_at | when it was received, UTC | no time was known yet
--@ namespace | `.metadata.namespace` | never
--@ job | `.metadata.name` | never
--@ job_uid | `.metadata.uid` | absent in the object
--@ rv | `.metadata.resourceVersion` | absent or not a number
--@ type | LIST, ADDED, MODIFIED or DELETED | never
--@ generation | `.metadata.generation` | absent in the object
--@ active | `.status.active` | 0 when absent
--@ ready | `.status.ready` | absent in the object
--@ succeeded | `.status.succeeded` | 0 when absent
--@ failed | `.status.failed` | 0 when absent
--@ terminating | `.status.terminating` | absent in the object
--@ completed_indexes | `.status.completedIndexes` | absent in the object
--@ failed_indexes | `.status.failedIndexes` | absent in the object
--@ uncounted | pods that had ended and were not counted yet (`.status.uncountedTerminatedPods`) | the field is absent
--@ conditions | conditions with status True, as `Type(reason)` | absent in the object
--@ changes | what differs from the revision before, in words | never; empty when only metadata that the server keeps changed
--@ writer | field manager whose managedFields entry is new or newer in this revision | nobody can be told from it
CREATE VIEW job_history AS
WITH
states AS (
  SELECT trace, seq, recv_ns, type, namespace, name, uid, rv, _order, generation, finalizers,
         deleted_ns, managers, conditions, start_ns, active, ready, succeeded, failed, terminating,
         completed_indexes, failed_indexes,
         len(uncounted_succeeded) + len(uncounted_failed) AS uncounted,
         hash(spec) AS spec, hash(labels) AS labels, hash(annotations) AS annotations
  FROM internal._states
  WHERE stream = 'jobs'
),
revisions AS (
  SELECT *, lag({
           'rv': rv, 'spec': spec, 'labels': labels, 'annotations': annotations,
           'finalizers': finalizers, 'deleted_ns': deleted_ns, 'managers': managers,
           'conditions': conditions, 'start_ns': start_ns, 'active': active, 'ready': ready,
           'succeeded': succeeded, 'failed': failed, 'terminating': terminating,
           'completed_indexes': completed_indexes, 'failed_indexes': failed_indexes,
           'uncounted': uncounted
         }) OVER (PARTITION BY trace, namespace, uid ORDER BY _order, seq) AS p
  FROM states
)
SELECT trace, seq, utc(recv_ns) AS seen_at, namespace, name AS job, uid AS job_uid, rv, type, generation,
       coalesce(active, 0) AS active, ready, coalesce(succeeded, 0) AS succeeded,
       coalesce(failed, 0) AS failed, terminating, completed_indexes, failed_indexes,
       uncounted,
       true_conditions(conditions) AS conditions,
       list_filter([
         CASE WHEN p IS NULL THEN CASE type WHEN 'ADDED' THEN 'created' ELSE 'first seen' END END,
         CASE WHEN type = 'DELETED' THEN 'gone' END,
         changed_number('active', p.active, active, p IS NULL),
         changed_number('ready', p.ready, ready, p IS NULL),
         changed_number('succeeded', p.succeeded, succeeded, p IS NULL),
         changed_number('failed', p.failed, failed, p IS NULL),
         changed_number('terminating', p.terminating, terminating, p IS NULL),
         changed_number('uncounted', p.uncounted, uncounted, p IS NULL),
         CASE WHEN completed_indexes IS DISTINCT FROM p.completed_indexes
              THEN 'completedIndexes ' || coalesce(completed_indexes, 'gone') END,
         CASE WHEN failed_indexes IS DISTINCT FROM p.failed_indexes
              THEN 'failedIndexes ' || coalesce(failed_indexes, 'gone') END,
         CASE WHEN start_ns IS DISTINCT FROM p.start_ns
              THEN CASE WHEN start_ns IS NULL THEN 'startTime gone' ELSE 'startTime set' END END,
         CASE WHEN true_conditions(conditions) IS DISTINCT FROM true_conditions(p.conditions)
                   AND (p IS NOT NULL OR len(conditions) > 0)
              THEN 'conditions ' || coalesce(nullif(
                array_to_string(true_conditions(conditions), ', '), ''), 'none') END,
         CASE WHEN p IS NOT NULL AND spec <> p.spec THEN 'spec' END,
         CASE WHEN p IS NOT NULL AND labels <> p.labels THEN 'labels' END,
         CASE WHEN p IS NOT NULL AND annotations <> p.annotations
              THEN 'annotations' END,
         CASE WHEN finalizers IS DISTINCT FROM p.finalizers THEN 'finalizers ' || coalesce(
           nullif(array_to_string(finalizers, ', '), ''), 'none') END,
         CASE WHEN deleted_ns IS NOT NULL AND p.deleted_ns IS NULL THEN 'deletion asked for' END
       ], lambda change: change IS NOT NULL) AS changes,
       new_manager(managers, p.managers) AS writer
FROM revisions
WHERE type <> 'LIST' OR p IS NULL OR rv IS DISTINCT FROM p.rv;
