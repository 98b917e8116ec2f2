-- What do the Warning events say?
SELECT reason, component, kind, sum(count) AS times, count(*) AS events, any_value(message) AS for_example
FROM k8s_events
WHERE event_type = 'Warning'
GROUP BY ALL
ORDER BY times DESC
LIMIT 50
