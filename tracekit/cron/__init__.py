"""Cron expressions as the two generations of robfig/cron read them."""
