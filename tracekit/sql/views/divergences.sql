--- One row per action that differs from what the controller's rules demand (computed by a replay).
--@ trace | name of the trace | never
--@ controller | the controller that was judged, for example job | never
--@ kind | kind of the object whose controller was judged | never
--@ namespace | its namespace | never
--@ name | its name | never
--@ uid | its uid; empty when it is not known | never
--@ action | as in `verdicts` | never
--@ verdict | different, missing, extra, early or late | never
--@ seen_at | when the write was received, UTC | never
--@ rv | revision that the write made | not a number
--@ subject | what was acted upon: a pod's name, a status, an Event's reason and message | never
--@ why | the rule that fired, with its numbers and the cut that was tried | never
--@ fields | differences: path, expected and observed (JSON text) | never; empty unless different
--= verdict | different, missing, extra, early, late
CREATE VIEW divergences AS
SELECT trace, controller, kind, namespace, name, uid,
       action COLLATE NOCASE AS action, verdict COLLATE NOCASE AS verdict, utc(time_ns) AS seen_at,
       try_cast(resource_version AS BIGINT) AS rv, subject, why, fields
FROM internal._verdicts
WHERE divergent = true;  -- a comparison is handed on to the file, whose row groups are left unread
