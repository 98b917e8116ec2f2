--- One row per node and span of time in which the number of pods of Jobs on it stayed the same.
--- Ask for a time with `WHERE from_at <= t AND (until_at > t OR until_at IS NULL)`.
--? How many pods of Jobs did each node hold at a time?
--@ trace | name of the trace | never
--@ node | the node | never
--@ from_at | from when on, UTC, by receipt | never
--@ until_at | until when | it stayed so to the end
--@ pods | pods of Jobs that were bound to the node and had not ended | never
CREATE VIEW node_pods AS
WITH
steps AS (
  SELECT trace, node, bound_ns AS ns, 1 AS step FROM internal._pods
  WHERE node IS NOT NULL AND bound_ns IS NOT NULL
  UNION ALL
  SELECT trace, node, coalesce(ended_ns, gone_ns), -1 FROM internal._pods
  WHERE node IS NOT NULL AND bound_ns IS NOT NULL AND coalesce(ended_ns, gone_ns) IS NOT NULL
),
changes AS (
  SELECT trace, node, ns, sum(step) AS step FROM steps GROUP BY ALL HAVING sum(step) <> 0
)
SELECT trace, node, utc(ns) AS from_at,
       utc(lead(ns) OVER w) AS until_at,
       (sum(step) OVER w)::BIGINT AS pods
FROM changes
WINDOW w AS (PARTITION BY trace, node ORDER BY ns)
ORDER BY trace, node, from_at;
