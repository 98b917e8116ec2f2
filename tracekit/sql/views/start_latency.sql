--- One row per hour and namespace: how long pods took from their creation to their start.
--? How long did pods wait before they started, hour by hour?
--@ trace | name of the trace | never
--@ hour | the hour in which the pods were created, UTC | never
--@ namespace | the pods' namespace | never
--@ pods | pods of Jobs that were created in it | never
--@ never_started | of them, those that no kubelet took | never; 0 when all were
--@ p50_s | median of `queue_s` in `attempts`, seconds | none started
--@ p95_s | 95th percentile of the same | none started
--@ max_s | longest of the same | none started
--@ running_p95_s | 95th percentile from the creation to the first sight of Running: with pulls and init containers | none was seen to run
CREATE VIEW start_latency AS
SELECT trace, date_trunc('hour', created_at) AS hour, namespace, count(*) AS pods,
       count(*) FILTER (queue_s IS NULL) AS never_started,
       quantile_cont(queue_s, 0.5) AS p50_s,
       quantile_cont(queue_s, 0.95) AS p95_s,
       max(queue_s) AS max_s,
       quantile_cont(epoch(running_at - created_at), 0.95) AS running_p95_s
FROM attempts
WHERE created_at IS NOT NULL
GROUP BY ALL
ORDER BY trace, hour, namespace;
