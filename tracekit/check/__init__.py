"""The checker: which runs of the ported controllers explain each observed write.

Knows: ports, versions, Kubernetes words; no files, no clock.
Called by: judge, answers, sql.
"""
