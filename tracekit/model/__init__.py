"""The controller manager's process and the cluster around it, on a virtual clock.

Knows: ports, versions.
Called by: check's and answers' questions, simulate's verb.
"""
