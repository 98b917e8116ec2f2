--- One row per object and finalizer: when it was there, and for how long.
--@ trace | name of the trace | never
--@ kind | kind of the object | unknown kind
--@ namespace | the object's namespace | cluster-scoped objects
--@ name | the object's name | absent in the object
--@ uid | the object's uid | absent in the object
--@ job | the Job that the object is or belonged to | belongs to none
--@ finalizer | the finalizer, for example batch.kubernetes.io/job-tracking | never
--@ from_at | when the object was first seen with it, UTC | no time was known yet
--@ until_at | when it was first seen without it, or gone | it had it when last seen
--@ held_s | between the two, seconds | until_at is null
--@ ended_at | pods: when the phase Succeeded or Failed was first seen | other kinds, pods that did not end
--@ after_end_s | how long it was held after the pod had ended, seconds | one of the two is null
--@ left_behind | the object was last seen with the finalizer: on a pod that has ended, one that should have been taken off | never
CREATE VIEW finalizers AS
WITH
objects AS (
  SELECT trace, stream, namespace, name, uid, max(kind) AS kind, max(job) AS job,
         min(recv_ns) FILTER (phase IN ('Succeeded', 'Failed')) AS ended_ns,
         arg_max(type, _order) AS last_type,
         arg_max(recv_ns, _order) AS last_ns
  FROM internal._states
  WHERE stream IN ('jobs', 'cronjobs', 'pods')
  GROUP BY trace, stream, namespace, name, uid
),
held AS (
  SELECT trace, stream, namespace, name, uid, unnest(finalizers) AS finalizer, recv_ns, type, _order
  FROM internal._states
  WHERE stream IN ('jobs', 'cronjobs', 'pods') AND len(finalizers) > 0 AND type <> 'DELETED'
),
spans AS (
  SELECT trace, stream, namespace, name, uid, finalizer,
         min(recv_ns) AS from_ns, max(_order) AS last_order
  FROM held
  GROUP BY ALL
),
afterwards AS (
  SELECT spans.trace, spans.stream, spans.namespace, spans.name, spans.uid, spans.finalizer,
         min(states.recv_ns) AS until_ns
  FROM spans
  JOIN internal._states AS states USING (trace, stream, namespace, name, uid)
  WHERE states._order > spans.last_order
  GROUP BY ALL
)
SELECT trace, objects.kind, namespace, name, uid, objects.job, finalizer,
       utc(from_ns) AS from_at,
       utc(until_ns) AS until_at,
       seconds_between(from_ns, until_ns) AS held_s,
       utc(ended_ns) AS ended_at,
       seconds_between(ended_ns, until_ns) AS after_end_s,
       until_ns IS NULL AS left_behind
FROM spans
JOIN objects USING (trace, stream, namespace, name, uid)
LEFT JOIN afterwards USING (trace, stream, namespace, name, uid, finalizer);
