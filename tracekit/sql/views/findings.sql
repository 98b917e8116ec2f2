--- One row per object of a finding, worst first: what `tracekit diagnose` says (computed).
--? What went wrong, and what is to be done?
--@ trace | name of the trace | never
--@ rank | place of the finding among all, from 1 on | never
--@ id | kind of finding, like TK405 | never
--@ severity | error, warning or info | never
--@ kind | kind of the object | never
--@ namespace | its namespace; empty for what has none | never
--@ name | its name | never
--@ uid | its uid; empty when it is not known | never
--@ cronjob | the CronJob that owns it | none does
--@ claim | what is the matter with it | never
--@ detail | the same with its own times and numbers | never
--@ from_at | when it began, UTC | no time is known
--@ until_at | when it was last so, UTC | no time is known
--@ advice | what to do | never
--@ caused_by | the kind of finding of which it is a consequence | it is no consequence
--@ thread | number of the thread in kubernetes/kubernetes | there is none
--@ facts | what it was decided from (JSON text) | never
--= severity | error, warning, info
CREATE VIEW findings AS
SELECT trace, rank, id, severity COLLATE NOCASE AS severity, kind, namespace, name, uid, cronjob, claim,
       detail, utc(from_ns) AS from_at, utc(until_ns) AS until_at, advice, caused_by, thread, facts
FROM internal._findings
ORDER BY rank, from_ns;
