-- When did most pods run at once, over all namespaces?
SELECT trace, changed_at, running
FROM concurrency(NULL)
QUALIFY row_number() OVER (PARTITION BY trace ORDER BY running DESC, changed_at) = 1
