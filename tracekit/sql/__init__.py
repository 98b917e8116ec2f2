"""SQL over traces: DuckDB views made for Jobs, CronJobs and their pods.

Knows: traces, judge, answers.
Called by: minimise, watch, report, api, cli.
"""
