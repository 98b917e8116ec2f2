--- One row per container that ended and whose log was wanted (`tracekit record --logs`).
--@ trace | name of the trace | never
--@ seen_at | when the log was read, UTC | never
--@ namespace | the pod's namespace | never
--@ job | the Job that the pod belongs to | it belongs to none
--@ job_uid | uid of that Job | it belongs to none
--@ pod | the pod's name | never
--@ pod_uid | its uid | never
--@ container | the container's name | never
--@ init | it is an init container | never
--@ restart | how often it had been restarted before it ran | never
--@ exit_code | its exit code | it was not seen to end
--@ reason | the reason of its end, for example OOMKilled | it was not seen to end
--@ finished_at | when it ended, UTC | it was not seen to end
--@ text | its last lines, each with the time at which it was written | the log could not be had
--@ lines | how many there are | the log could not be had
--@ truncated | lines before or after these were left out | the log could not be had
--@ followed | read while it ran, since its pod was being deleted | the log could not be had
--@ gap | why the log could not be had | it could
CREATE VIEW logs AS
SELECT trace, utc(recv_ns) AS seen_at, namespace, job,
       CASE WHEN owner_kind = 'Job' THEN owner_uid END AS job_uid, name AS pod,
       raw ->> '$.podUID' AS pod_uid,
       raw ->> '$.container' AS container,
       (raw ->> '$.init')::BOOLEAN AS init,
       (raw ->> '$.restart')::BIGINT AS restart,
       (raw ->> '$.terminated.exitCode')::BIGINT AS exit_code,
       raw ->> '$.terminated.reason' AS reason,
       try_cast(raw ->> '$.terminated.finishedAt' AS TIMESTAMPTZ)::TIMESTAMP AS finished_at,
       raw ->> '$.text' AS text,
       (raw ->> '$.lines')::BIGINT AS lines,
       (raw ->> '$.truncated')::BOOLEAN AS truncated,
       (raw ->> '$.followed')::BOOLEAN AS followed,
       raw ->> '$.gap' AS gap
FROM internal._rows
WHERE stream = 'logs' AND type = 'ADDED';
