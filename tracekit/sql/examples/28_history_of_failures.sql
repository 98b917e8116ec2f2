-- What happened in the half minute before each failed Job's end?
SELECT failed.namespace, failed.job, events.seen_at, events.reason, events.message
FROM (SELECT * FROM jobs WHERE outcome = 'Failed' ORDER BY finished_at LIMIT 20) AS failed
JOIN k8s_events AS events
  ON events.trace = failed.trace AND events.namespace = failed.namespace
  AND events.job = failed.job
  AND events.seen_at BETWEEN failed.finished_at - INTERVAL 30 SECOND AND failed.finished_at + INTERVAL 2 SECOND
ORDER BY failed.namespace, failed.job, events.seen_at
