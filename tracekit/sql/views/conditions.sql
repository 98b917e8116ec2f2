--- One row per change of a condition of a Job or of a pod of a Job.
--@ trace | name of the trace | never
--@ seen_at | when the change was received, UTC | no time was known yet
--@ kind | Job or Pod | never
--@ namespace | the object's namespace | never
--@ name | the object's name | never
--@ uid | the object's uid | absent in the object
--@ job | the Job that the object is or belongs to | never
--@ condition | type of the condition, for example Failed or Ready | absent in the object
--@ status | True, False or Unknown; gone when the condition was taken away | absent in the object
--@ reason | `reason` of the condition | none was given
--@ message | `message` of the condition | none was given
--@ transition_at | `lastTransitionTime`, UTC | absent in the object
--@ rv | revision of the object that brought the change | absent or not a number
--= kind | Job, Pod
--= status | True, False, Unknown, gone
CREATE VIEW conditions AS
WITH
states AS (
  SELECT trace, recv_ns, kind, namespace, name, uid, job, rv, conditions,
         lag(conditions) OVER (
           PARTITION BY trace, namespace, uid ORDER BY _order, seq
         ) AS before
  FROM internal._states
  WHERE stream IN ('jobs', 'pods')
),
changes AS (
  SELECT * EXCLUDE (conditions, before), unnest(list_concat(
    list_filter(coalesce(conditions, []), lambda c: NOT list_contains(
      list_transform(coalesce(before, []),
                     lambda b: {'t': b.type, 's': b.status, 'r': b.reason, 'm': b.message}),
      {'t': c.type, 's': c.status, 'r': c.reason, 'm': c.message})),
    list_transform(
      list_filter(coalesce(before, []), lambda b: NOT list_contains(
        list_transform(coalesce(conditions, []), lambda c: c.type), b.type)),
      lambda b: {
        'type': b.type, 'status': 'gone', 'reason': NULL::VARCHAR, 'message': NULL::VARCHAR,
        'last_probe_ns': NULL::BIGINT, 'last_transition_ns': NULL::BIGINT
      })
  )) AS c
  FROM states
  WHERE job IS NOT NULL AND conditions IS DISTINCT FROM before
)
SELECT trace, utc(recv_ns) AS seen_at, kind COLLATE NOCASE AS kind, namespace, name, uid, job, c.type COLLATE NOCASE AS condition,
       c.status COLLATE NOCASE AS status, nullif(c.reason, '') AS reason, nullif(c.message, '') AS message,
       utc(c.last_transition_ns) AS transition_at, rv
FROM changes;
