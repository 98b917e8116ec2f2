--- One row per time in which the recorder could not see a stream: what happened in it is unknowable.
--@ trace | name of the trace | never
--@ stream | plural resource, for example `pods` | never
--@ from_at | last time at which the stream was seen, UTC | it never was
--@ until_at | first time at which it was seen again | it did not come back
--@ duration_s | between the two, seconds | one of the two is null
--@ last_rv | last revision seen before | there was none
--@ next_rv | first revision known again | the stream did not come back
--@ reason | what happened, in words | never
CREATE VIEW gaps AS
SELECT trace, stream, utc(gap_from_ns) AS from_at, utc(gap_until_ns) AS until_at,
       seconds_between(gap_from_ns, gap_until_ns) AS duration_s,
       gap_last_rv AS last_rv, gap_next_rv AS next_rv, gap_reason AS reason
FROM internal._rows
WHERE type = 'GAP';
