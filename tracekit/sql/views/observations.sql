--- Every row of the trace, as it was received; the other views are made from this one.
--- The columns beside `trace` and `seen_at` are those of the files: see docs/trace-format.md.
--@ trace | name of the trace (its directory, or as it was given where two share a name) | never
--@ seen_at | `recv_ns` as a time in UTC, cut to microseconds | no time was known yet
CREATE VIEW observations AS
SELECT trace, utc(recv_ns) AS seen_at, * EXCLUDE (trace)
FROM internal._rows;
