--- One row per action of a controller, with its verdict (computed by a replay of the whole trace).
--@ trace | name of the trace | never
--@ controller | the controller that was judged, for example job | never
--@ kind | kind of the object whose controller was judged | never
--@ namespace | its namespace | never
--@ name | its name | never
--@ uid | its uid; empty when it is not known | never
--@ action | pod-create, pod-delete, finalizer-removal, pod-adopt, pod-release, status-update, event, … | never
--@ verdict | match, match-lagged, different, missing, extra, early, late, foreign or unknowable | never
--@ divergent | whether the verdict says that the rules were not followed | never
--@ seen_at | when the write was received, UTC | never
--@ rv | revision that the write made | not a number
--@ subject | what was acted upon: a pod's name, a status, an Event's reason and message | never
--@ why | the rule that fired, with its numbers, or the evidence for another actor | never
--@ lag_observations | revisions that the controller's cache had not seen yet | never; 0 unless match-lagged
--@ lag_s | age of the oldest of them, seconds | never; 0 unless match-lagged
--@ reason | why the record cannot tell: before-record, gap, censored, not-recorded, undecided, version-unsaid or misfit | unless unknowable
--@ forced | whether no other state of the caches explains it | always: only `tracekit explain` counts that
--@ ambiguous | whether somebody else may have done the same just as well | never
--@ silent_syncs | syncs without a visible write that the explanation needs | never
--@ assumptions | what the verdict takes for granted: kind, from_ns, until_ns, evidence | never; mostly empty
--= verdict | match, match-lagged, different, missing, extra, early, late, foreign, unknowable
CREATE VIEW verdicts AS
SELECT trace, controller, kind, namespace, name, uid,
       action COLLATE NOCASE AS action, verdict COLLATE NOCASE AS verdict, divergent,
       utc(time_ns) AS seen_at, try_cast(resource_version AS BIGINT) AS rv, subject, why,
       lag_observations, lag_ns / 1e9 AS lag_s,
       reason, forced, ambiguous, silent_syncs, assumptions
FROM internal._verdicts;
