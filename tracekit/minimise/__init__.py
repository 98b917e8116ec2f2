"""The smallest trace that still shows one divergence or finding: what is attached to a report.

Knows: traces, judge, answers.
Called by: cli.
"""
