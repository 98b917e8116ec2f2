-- Where did succeeded or failed go down, or up by more than the pods that ended?
SELECT namespace, job, seen_at, rv, field, before, after, ended, what
FROM count_jumps
ORDER BY seen_at
LIMIT 100
