--- One row per unfinished Job, and per pod that holds it up (computed).
--? What does it wait for, and what would free it?
--@ trace | name of the trace | never
--@ kind | Job or Pod | never
--@ namespace | its namespace | never
--@ name | its name | never
--@ uid | its uid; empty when it is not known | never
--@ job | the Job | never
--@ waits_for | what holds it; `its pods, which run` or `its pods to start` where nothing does; without such pods what its controller has yet to do, from `its controller, to …`; `unknown` where Jobs or pods were not seen | never
--@ container | the container that holds the pod | a Job, or no one container does
--@ reason | the reason that the kubelet or the scheduler gives | none was given
--@ message | the words of whoever holds it | none was given
--@ since_at | since when, UTC | no time is known
--@ restarts | how often that container was restarted | a Job
--@ exit_code | how that container ended last | a Job, or it never did
--@ evidence | from what that is known | never
--@ finding | kind of finding that says it | no finding is about it
--@ advice | what would free it | nothing is known
--= kind | Job, Pod
CREATE VIEW waits AS
SELECT trace, kind COLLATE NOCASE AS kind, namespace, name, uid, job, waits_for, container, reason, message,
       utc(since_ns) AS since_at, restarts, exit_code, evidence, finding, advice
FROM internal._waits
ORDER BY since_ns;
