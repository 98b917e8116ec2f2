"""Ports of both CronJob controllers: the polling one (to 1.20) and the queue-based one."""
