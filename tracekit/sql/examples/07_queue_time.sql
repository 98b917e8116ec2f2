-- How long did pods wait before they started, minute by minute?
SELECT date_trunc('minute', created_at) AS minute, count(*) AS pods,
       round(quantile_cont(queue_s, 0.5), 1) AS median_s, round(max(queue_s), 1) AS longest_s
FROM attempts
GROUP BY ALL
ORDER BY minute
