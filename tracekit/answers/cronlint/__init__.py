"""How two readers understand one cron schedule: the Go library of Kubernetes, and croniter.

croniter stands for what crontab users and Airflow expect. Nothing here is used for verdicts.
"""
