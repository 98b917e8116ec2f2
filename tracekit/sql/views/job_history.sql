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
{counts documented}
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
         deleted_ns, managers, conditions, start_ns, {counts},
         completed_indexes, failed_indexes,
         len(uncounted_succeeded) + len(uncounted_failed) AS uncounted,
         hash(spec) AS spec, hash(labels) AS labels, hash(annotations) AS annotations
  FROM internal._states
  WHERE stream = 'jobs'
),
revisions AS (
  -- One column each: a query computes only those that it needs.
  SELECT *,
         lag(false, 1, true) OVER w AS first,
         lag(rv) OVER w AS old_rv,
         lag(spec) OVER w AS old_spec,
         lag(labels) OVER w AS old_labels,
         lag(annotations) OVER w AS old_annotations,
         lag(finalizers) OVER w AS old_finalizers,
         lag(deleted_ns) OVER w AS old_deleted_ns,
         lag(managers) OVER w AS old_managers,
         lag(conditions) OVER w AS old_conditions,
         lag(start_ns) OVER w AS old_start_ns,
         {counts before},
         lag(completed_indexes) OVER w AS old_completed_indexes,
         lag(failed_indexes) OVER w AS old_failed_indexes,
         lag(uncounted) OVER w AS old_uncounted
  FROM states
  WINDOW w AS (PARTITION BY trace, namespace, uid ORDER BY _order, seq)
)
SELECT trace, seq, utc(recv_ns) AS seen_at, namespace, name AS job, uid AS job_uid, rv, type, generation,
       {counts shown}, completed_indexes, failed_indexes,
       uncounted,
       true_conditions(conditions) AS conditions,
       list_filter([
         CASE WHEN first THEN CASE type WHEN 'ADDED' THEN 'created' ELSE 'first seen' END END,
         CASE WHEN type = 'DELETED' THEN 'gone' END,
         {counts changed},
         changed_number('uncounted', old_uncounted, uncounted, first),
         CASE WHEN completed_indexes IS DISTINCT FROM old_completed_indexes
              THEN 'completedIndexes ' || coalesce(completed_indexes, 'gone') END,
         CASE WHEN failed_indexes IS DISTINCT FROM old_failed_indexes
              THEN 'failedIndexes ' || coalesce(failed_indexes, 'gone') END,
         CASE WHEN start_ns IS DISTINCT FROM old_start_ns
              THEN CASE WHEN start_ns IS NULL THEN 'startTime gone' ELSE 'startTime set' END END,
         CASE WHEN true_conditions(conditions) IS DISTINCT FROM true_conditions(old_conditions)
                   AND (NOT first OR len(conditions) > 0)
              THEN 'conditions ' || coalesce(nullif(
                array_to_string(true_conditions(conditions), ', '), ''), 'none') END,
         CASE WHEN NOT first AND spec <> old_spec THEN 'spec' END,
         CASE WHEN NOT first AND labels <> old_labels THEN 'labels' END,
         CASE WHEN NOT first AND annotations <> old_annotations
              THEN 'annotations' END,
         CASE WHEN finalizers IS DISTINCT FROM old_finalizers THEN 'finalizers ' || coalesce(
           nullif(array_to_string(finalizers, ', '), ''), 'none') END,
         CASE WHEN deleted_ns IS NOT NULL AND old_deleted_ns IS NULL THEN 'deletion asked for' END
       ], lambda change: change IS NOT NULL) AS changes,
       new_manager(managers, old_managers) AS writer
FROM revisions
WHERE type <> 'LIST' OR first OR rv IS DISTINCT FROM old_rv;
