--- One row per Job and per pod of a Job that ended: why, and from what that is known (computed).
--? Why did it end?
--@ trace | name of the trace | never
--@ kind | Job or Pod | never
--@ namespace | its namespace | never
--@ name | its name | never
--@ uid | its uid; empty when it is not known | never
--@ job | the Job | never
--@ ended_at | when its end was received, UTC | no time is known
--@ cause | why: of a failed Job what `findings` claims, of a pod as docs/findings.md has it; who deleted stands in `deletions` | never
--@ reason | the condition's, the pod's or the container's reason | none was given
--@ message | its message | none was given
--@ exit_code | of its regular containers, the exit code of the one that ended with an error first, else 0 | a Job, or no container ended
--@ evidence | from what that is known | never
--@ finding | kind of finding that says it | none does
--= kind | Job, Pod
CREATE VIEW endings AS
SELECT trace, kind COLLATE NOCASE AS kind, namespace, name, uid, job, utc(ended_ns) AS ended_at, cause, reason,
       message, exit_code, evidence, finding
FROM internal._endings
ORDER BY ended_ns;
