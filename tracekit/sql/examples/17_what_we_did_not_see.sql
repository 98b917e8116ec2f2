-- Where is the record blind?
SELECT stream, from_at, until_at, duration_s, reason
FROM gaps
ORDER BY from_at
