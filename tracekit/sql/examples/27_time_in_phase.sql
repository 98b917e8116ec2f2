-- Where do pods spend their time?
SELECT phase, count(*) AS spans, round(avg(duration_s), 2) AS mean_s,
       round(quantile_cont(duration_s, 0.95), 2) AS p95_s, round(sum(duration_s)) AS total_s
FROM pod_phases
GROUP BY ALL
ORDER BY total_s DESC NULLS LAST
