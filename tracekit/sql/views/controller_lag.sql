--- One row per controller and kind of write: how far its cache was behind (computed by a replay).
--? How far behind was the controller when it wrote?
--@ trace | name of the trace | never
--@ controller | the controller that was judged, for example job | never
--@ action | as in `verdicts` | never
--@ writes | writes that the rules explain | never
--@ lagged | of them, those that only a cache that lagged explains | never; 0 when all were up to date
--@ p95_s | 95th percentile of the lag of those, seconds | none lagged
--@ longest_s | longest lag, seconds | none lagged
--@ most_observations | most revisions that a cache had not seen yet | none lagged
--@ worst_at | when the write with the longest lag was received, UTC | none lagged
--@ worst_object | its object, as NAMESPACE/NAME | none lagged
CREATE VIEW controller_lag AS
SELECT trace, controller, action, count(*) AS writes, count(*) FILTER (lags) AS lagged,
       quantile_cont(lag_s, 0.95) FILTER (lags) AS p95_s,
       max(lag_s) FILTER (lags) AS longest_s,
       max(lag_observations) FILTER (lags) AS most_observations,
       arg_max(seen_at, lag_s) FILTER (lags) AS worst_at,
       arg_max(namespace || '/' || name, lag_s) FILTER (lags) AS worst_object
FROM (SELECT *, verdict = 'match-lagged' AS lags FROM verdicts
      WHERE verdict IN ('match', 'match-lagged'))
GROUP BY trace, controller, action
ORDER BY longest_s DESC NULLS LAST, writes DESC;
