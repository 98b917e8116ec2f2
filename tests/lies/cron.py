"""Lies about the CronJob and the TTL controller."""

from __future__ import annotations
KINDS = {}
