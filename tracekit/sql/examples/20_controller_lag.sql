-- How far behind was the controller's cache when it wrote?
SELECT action, count(*) AS writes, count(*) FILTER (verdict = 'match-lagged') AS lagged,
       round(max(lag_s), 3) AS longest_s, max(lag_observations) AS most_observations
FROM verdicts
GROUP BY ALL
ORDER BY writes DESC
