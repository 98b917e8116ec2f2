-- Which nodes do failed pods come from?
SELECT node, count(*) AS pods, count(*) FILTER (phase = 'Failed') AS failed,
       round(100 * count(*) FILTER (phase = 'Failed') / count(*), 1) AS percent
FROM attempts
GROUP BY ALL
ORDER BY failed DESC
LIMIT 20
