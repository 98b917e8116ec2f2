--- One row per Kubernetes Event object, as it was last seen.
--@ trace | name of the trace | never
--@ seen_at | when its first state was received, UTC | no time was known yet
--@ namespace | the Event's namespace | never
--@ name | the Event's name | absent in the object
--@ kind | kind of the object that it is about | absent in the object
--@ object | name of that object | absent in the object
--@ object_uid | uid of that object | absent in the object
--@ job | the Job that it is about | it is about something else
--@ cronjob | the CronJob that it is about | it is about something else
--@ event_type | Normal or Warning | absent in the object
--@ reason | `.reason` | absent in the object
--@ message | `.message` or `.note` | absent in the object
--@ count | how often it happened (`.series.count` or `.count`) | absent in the object
--@ first_at | first time that it tells of, UTC | absent in the object
--@ last_at | last time that it tells of, UTC | absent in the object
--@ component | who reported it, for example job-controller | absent in the object
--= event_type | Normal, Warning
CREATE VIEW k8s_events AS
SELECT trace, utc(min(recv_ns)) AS seen_at, namespace, any_value(name) AS name,
       arg_max(involved_kind, _order) AS kind,
       arg_max(involved_name, _order) AS object,
       arg_max(involved_uid, _order) AS object_uid,
       arg_max(job, _order) AS job,
       arg_max(cronjob, _order) AS cronjob,
       arg_max(event_type, _order) COLLATE NOCASE AS event_type,
       arg_max(reason, _order) AS reason,
       arg_max(message, _order) AS message,
       max(count) AS count,
       utc(min(first_ns)) AS first_at,
       utc(max(last_ns)) AS last_at,
       arg_max(component, _order) AS component
FROM internal._states
WHERE stream = 'events'
GROUP BY trace, namespace, uid;
