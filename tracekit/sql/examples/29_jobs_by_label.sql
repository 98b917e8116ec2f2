-- Which labels do the failing Jobs carry?
SELECT label.key AS label, label.value AS value, count(*) AS jobs
FROM (SELECT unnest(map_entries(labels)) AS label FROM jobs WHERE outcome = 'Failed')
WHERE label.key NOT LIKE '%controller-uid' AND label.key NOT LIKE '%job-name'
GROUP BY ALL
ORDER BY jobs DESC
LIMIT 20
