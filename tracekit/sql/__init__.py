"""SQL over traces: DuckDB views made for Jobs, CronJobs and their pods."""
