--- One row per pod of a Job, Job or CronJob that was deleted: by whom, by which rule, known from what.
--- Evidence, strongest first: the audit log, Events and conditions, what controllers do by their
--- rules: order is that of revisions, for the streams of a watch come at different times.
CREATE VIEW internal._deletions AS
WITH
going AS (
  SELECT trace, stream, namespace, name, uid,
         max(job) AS job, max(cronjob) AS cronjob,
         arg_max_null(owner_uid, _order) AS owner_uid,
         min(recv_ns) FILTER (type = 'DELETED' OR deleted_ns IS NOT NULL) AS deletion_ns,
         min(rv) FILTER (type = 'DELETED' OR deleted_ns IS NOT NULL) AS deletion_rv,
         max(recv_ns) FILTER (type = 'DELETED') AS gone_ns,
         -- Nobody saw it go: a list has it, and a later one of the same scope has not.
         CASE WHEN bool_or(synthesized) FILTER (type = 'DELETED')
                AND count(*) FILTER (type <> 'DELETED' AND deleted_ns IS NOT NULL) = 0
              THEN max(recv_ns) FILTER (type <> 'DELETED') END AS last_seen_ns,
         min(rv) FILTER (phase IN ('Succeeded', 'Failed')) AS ended_rv,
         arg_max(conditions, _order) FILTER (stream = 'pods' AND len(list_filter(
           conditions, lambda c: c.type = 'DisruptionTarget' AND c.status = 'True')) > 0) AS pod_conditions,
         -- Who asked for it: a kubelet only says that the containers have ended.
         arg_min(struct_pack(name := actor, agent := actor_agent, verb := verb), _order) FILTER (
           verb IN ('delete', 'deletecollection', 'create/eviction') AND actor IS NOT NULL
           AND NOT starts_with(actor, 'system:node:') AND (type = 'DELETED' OR deleted_ns IS NOT NULL)
         ) AS asker
  FROM internal._states
  WHERE stream IN ('pods', 'jobs', 'cronjobs')
  GROUP BY trace, stream, namespace, name, uid
  HAVING deletion_rv IS NOT NULL AND (stream <> 'pods' OR max(job) IS NOT NULL)
),
told AS (
  SELECT trace, involved_namespace AS namespace,
         CASE involved_kind WHEN 'Job' THEN 'pods' ELSE 'jobs' END AS stream,
         regexp_extract(message, '^(?:\(combined from similar events\): )?Deleted \w+:? (\S+)$', 1) AS name,
         any_value(component) AS component
  FROM internal._rows
  WHERE stream = 'events' AND reason = 'SuccessfulDelete'
    AND component IN ('job-controller', 'cronjob-controller')
  GROUP BY ALL
),
-- What old releases say with an Event, for there is no condition.
disruptions AS (
  SELECT trace, involved_uid AS uid,
         arg_min(disrupter(reason), recv_ns) AS disrupted_by,
         arg_min(reason, recv_ns) AS event_reason
  FROM internal._rows
  WHERE stream = 'events' AND involved_kind = 'Pod' AND reason IN ('Preempted', 'TaintManagerEviction')
    AND involved_uid IS NOT NULL
  GROUP BY ALL
),
-- What a Job was like at each of its revisions; a pod's deletion is looked up in it both ways.
job_states AS (
  SELECT trace, uid, rv, try_cast(spec->>'$.suspend' AS BOOLEAN) AS suspended,
         try_cast(spec->>'$.ttlSecondsAfterFinished' AS BIGINT) AS ttl_s,
         completion_ns, finished_condition(conditions) AS finish, ending_condition(conditions) AS ending
  FROM internal._states
  WHERE stream = 'jobs' AND rv IS NOT NULL
),
before AS (
  SELECT going.*, told.component, job_states.suspended, job_states.ttl_s, job_states.ending,
         finished_ns(job_states.completion_ns, job_states.finish) AS finished_ns
  FROM going
  LEFT JOIN told USING (trace, stream, namespace, name)
  ASOF LEFT JOIN job_states
    ON job_states.trace = going.trace AND going.deletion_rv >= job_states.rv
    AND job_states.uid = CASE going.stream WHEN 'jobs' THEN going.uid ELSE going.owner_uid END
),
-- Pods are deleted before the status that says why.
afterwards AS (
  SELECT before.*, job_states.ending AS next_ending
  FROM before
  ASOF LEFT JOIN job_states
    ON job_states.trace = before.trace AND before.deletion_rv < job_states.rv
    AND job_states.uid = before.owner_uid
),
owners AS (
  SELECT trace, uid, deletion_rv, stream FROM going WHERE stream <> 'pods'
),
namespaces AS (
  SELECT trace, name, min(rv) AS rv
  FROM internal._states
  WHERE stream = 'namespaces' AND (deleted_ns IS NOT NULL OR type = 'DELETED')
  GROUP BY ALL
),
facts AS (
  SELECT afterwards.*,
         coalesce(list_filter(pod_conditions, lambda c: c.type = 'DisruptionTarget' AND c.status = 'True')[1].reason, '')
           AS disruption,
         ended_rv IS NOT NULL AND ended_rv < afterwards.deletion_rv AS had_ended,
         owners.deletion_rv <= afterwards.deletion_rv AS owner_gone,
         namespaces.rv <= afterwards.deletion_rv AS namespace_gone,
         coalesce(ending, next_ending) AS over,
         (deletion_ns - finished_ns) / 1e9 AS after_finish_s,
         disrupted_by, event_reason,
         -- That no Event and no owner tells of it is evidence only where they would have been seen.
         deletion_ns IS NULL
           OR NOT EXISTS (FROM internal._coverage AS c WHERE c.trace = afterwards.trace)
           OR EXISTS (
             FROM internal._coverage AS c
             WHERE c.trace = afterwards.trace AND c.stream = 'events'
               AND (c.namespaces IS NULL OR list_contains(c.namespaces, afterwards.namespace))
               AND afterwards.deletion_ns BETWEEN c.from_ns AND c.until_ns
           ) AND (afterwards.stream <> 'pods' OR EXISTS (
             FROM internal._coverage AS c
             WHERE c.trace = afterwards.trace AND c.stream = 'jobs'
               AND (c.namespaces IS NULL OR list_contains(c.namespaces, afterwards.namespace))
               AND afterwards.deletion_ns BETWEEN c.from_ns AND c.until_ns
           )) AS seen,
         CASE
           WHEN asker.verb = 'create/eviction' THEN 'eviction'
           ELSE deleter_of(asker.name)
         END AS audited
  FROM afterwards
  LEFT JOIN disruptions ON disruptions.trace = afterwards.trace AND disruptions.uid = afterwards.uid
  LEFT JOIN owners
    ON owners.trace = afterwards.trace AND owners.uid = afterwards.owner_uid
    AND owners.stream <> afterwards.stream
  LEFT JOIN namespaces
    ON namespaces.trace = afterwards.trace AND namespaces.name = afterwards.namespace
),
judged AS (
  SELECT *,
         CASE
           WHEN audited <> 'user' THEN audited
           WHEN audited IS NULL AND component IS NOT NULL THEN component
           -- The kubelet ends pods, and deletes none.
           WHEN nullif(disrupter(disruption), 'kubelet') IS NOT NULL THEN disrupter(disruption)
           WHEN disrupted_by IS NOT NULL THEN disrupted_by
           WHEN audited IS NOT NULL THEN audited
           WHEN owner_gone THEN 'garbage-collector'
           WHEN namespace_gone THEN 'namespace-controller'
           WHEN stream = 'jobs' AND after_finish_s >= ttl_s THEN 'ttl-after-finished-controller'
           -- Without an Event an end that follows counts only if it cannot be this deletion's doing.
           WHEN stream = 'pods' AND NOT had_ended
             AND (suspended OR ending IS NOT NULL OR next_ending.reason = 'DeadlineExceeded'
                  OR next_ending.type = 'SuccessCriteriaMet') THEN 'job-controller'
           -- Between two lists what leads to it may have come and gone.
           WHEN seen AND last_seen_ns IS NULL THEN 'user'
           ELSE 'unknown'
         END AS deleted_by
  FROM facts
),
reasoned AS (
SELECT *,
       CASE deleted_by
         WHEN 'job-controller' THEN
           CASE WHEN component IS NULL THEN 'inferred: ' ELSE 'Event SuccessfulDelete: ' END ||
           CASE WHEN suspended THEN 'the Job is suspended'
                WHEN over IS NOT NULL THEN 'the Job is ' || condition_text(over)
                ELSE 'more pods were active than wanted' END
         WHEN 'cronjob-controller' THEN
           'Event SuccessfulDelete: ' ||
           CASE WHEN finished_ns IS NULL THEN 'concurrencyPolicy Replace'
                ELSE 'history limit of ' || CASE WHEN ending.type = 'Failed' THEN 'failed' ELSE 'successful' END || ' Jobs' END
         WHEN 'garbage-collector' THEN
           'inferred: its ' || CASE stream WHEN 'pods' THEN 'Job' ELSE 'CronJob' END || ' was deleted before'
         WHEN 'namespace-controller' THEN 'inferred: its namespace was deleted before'
         WHEN 'ttl-after-finished-controller' THEN
           'inferred: ' || round(after_finish_s, 1) || ' s after its end, ttlSecondsAfterFinished is ' || ttl_s
         WHEN 'user' THEN 'inferred: no rule of a controller leads to it'
         WHEN 'unknown' THEN CASE WHEN seen THEN 'nobody saw it go: nothing tells who' ELSE CASE stream WHEN 'pods' THEN 'Events or Jobs' ELSE 'Events' END ||
           ' were not seen then: nothing tells who' END
         ELSE CASE WHEN disruption <> '' THEN 'condition DisruptionTarget: ' || disruption
                   WHEN event_reason IS NOT NULL THEN 'Event ' || event_reason END
       END AS evidence
FROM judged
)
SELECT trace, stream, namespace, name, uid, job, cronjob, deletion_ns, deletion_rv, gone_ns, deleted_by,
       asker.name AS actor,
       concat_ws('; ', CASE WHEN asker.name IS NULL THEN evidence
            WHEN audited <> 'user' AND deleted_by <> 'eviction' THEN
              concat_ws('; ', 'audit log', replace(evidence, 'inferred: ', ''))
            ELSE concat_ws('; ', 'audit log: ' || asker.verb || ' by ' || asker.name || coalesce(' (' || asker.agent || ')', ''),
                           CASE WHEN deleted_by <> 'user' THEN evidence END)
       END, 'gone between ' || strftime(utc(last_seen_ns), '%Y-%m-%dT%H:%M:%SZ') || ' and '
            || strftime(utc(gone_ns), '%Y-%m-%dT%H:%M:%SZ') || ', as two lists tell') AS delete_evidence
FROM reasoned;
