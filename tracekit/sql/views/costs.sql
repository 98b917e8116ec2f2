--- One row per namespace: what the pods of its Jobs held, by time on a node and by their requests.
--? What did it cost, by namespace?
--@ trace | name of the trace | never
--@ namespace | the namespace | never
--@ jobs | Jobs whose pods were seen | never
--@ pods | their pods | never
--@ pod_s | seconds in which pods held nodes | never; 0 when none did
--@ wasted_pod_s | of them, wasted: as in `wasted_pods` | never; 0 when none was
--@ cpu_core_s | core-seconds: requested cores times the seconds | no pod requests cores
--@ memory_gib_s | GiB-seconds: requested memory times the seconds | no pod requests memory
--@ without_requests | pods that request neither, and so cost more than is told here | never; 0 when all request some
CREATE VIEW costs AS
WITH
held AS (
  SELECT trace, namespace, count(DISTINCT job_uid) AS jobs, count(*) AS pods,
         coalesce(sum(pod_s), 0) AS pod_s,
         sum(pod_s * cpu_request) AS cpu_core_s,
         sum(pod_s * memory_request) / 1024 ** 3 AS memory_gib_s,
         count(*) FILTER (cpu_request IS NULL AND memory_request IS NULL) AS without_requests
  FROM attempts
  GROUP BY ALL
),
wasted AS (
  SELECT trace, namespace, sum(wasted_pod_s) AS wasted_pod_s FROM wasted_pods GROUP BY ALL
)
SELECT trace, namespace, jobs, pods, pod_s, coalesce(wasted_pod_s, 0) AS wasted_pod_s, cpu_core_s,
       memory_gib_s, without_requests
FROM held
LEFT JOIN wasted USING (trace, namespace)
ORDER BY pod_s DESC;
