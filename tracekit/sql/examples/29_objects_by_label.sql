-- Which labels do the failing Jobs carry (read from the raw objects)?
SELECT object->'$.metadata.labels' AS labels, count(*) AS jobs
FROM objects
WHERE kind = 'Job' AND type = 'ADDED' AND namespace IN (
  SELECT namespace FROM jobs WHERE outcome = 'Failed' ORDER BY finished_at LIMIT 1
)
GROUP BY ALL
ORDER BY jobs DESC
LIMIT 20
