-- What did the Jobs of each team (their label) cost, and how much of it was wasted?
SELECT labels['team'] AS team, count(*) AS jobs, sum(jobs.pod_s) AS pod_s,
       sum(jobs.pod_s * cpu_request) AS cpu_core_s, coalesce(sum(wasted_pod_s), 0) AS wasted_pod_s
FROM jobs LEFT JOIN wasted_pods USING (trace, namespace, job_uid)
GROUP BY ALL
ORDER BY pod_s DESC
