--- One row per state of an object that was received, with the raw JSON.
--@ trace | name of the trace | never
--@ seq | position in the trace, in order of arrival | never
--@ seen_at | when it was received (`recv_ns`), UTC | no time was known yet
--@ stream | plural resource, for example `pods` | never
--@ type | LIST, ADDED, MODIFIED or DELETED | never
--@ kind | `.kind`, or for items of a list the kind of the stream | unknown kind
--@ namespace | `.metadata.namespace` | cluster-scoped objects
--@ name | `.metadata.name` | absent in the object
--@ uid | `.metadata.uid` | absent in the object
--@ rv | `.metadata.resourceVersion` as a number | absent or not a number
--@ object | the whole object: `object->>'$.spec.nodeName'`, `object->'$.metadata.labels'` | not valid JSON
CREATE VIEW objects AS
SELECT trace, seq, utc(recv_ns) AS seen_at, stream, type, kind, namespace, name, uid, rv,
       try_cast(raw AS JSON) AS object
FROM internal._rows
WHERE type IN ('LIST', 'ADDED', 'MODIFIED', 'DELETED');
