"""The smallest audit policy with which an audit log alone tells all that a replay needs.

Only writes, only of what Jobs are made of, with the bodies of the answers. Without managedFields,
which cost half of the bytes and tell less than the user that the log names anyway.
"""

from __future__ import annotations

from typing import Any

from tracekit.base.kube.leases import CONTROLLER_MANAGER_LEASE

_WRITES = ["create", "update", "patch", "delete", "deletecollection"]

#: What it costs, as measured on the shipped log v1.36.3-churn7 (250 Jobs, 835 pods) without
#: managedFields; tests/record/test_audit_policy.py measures it again.
BYTES_PER_JOB = 85_000
BYTES_PER_JOB_COMPRESSED = 2_800
PODS_PER_JOB = 3.3

COMMENT = f"""\
# The smallest audit policy with which the API server's log alone tells all that a replay of Jobs
# and CronJobs needs (kube-apiserver --audit-policy-file=THIS --audit-log-path=FILE). With a policy
# of your own, put its first three rules before your rules. Needs Kubernetes 1.23 (before: leave out
# omitManagedFields).
# Cost, measured: about {BYTES_PER_JOB // 1000} KB of JSON for a Job with {PODS_PER_JOB} pods,
# {BYTES_PER_JOB_COMPRESSED / 1000:.1f} KB compressed with zstd; and the controller manager's Lease,
# 1.5 KB every two seconds.
"""


def audit_policy() -> dict[str, Any]:
    """The policy as an object of audit.k8s.io/v1."""
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived", "ResponseStarted"],
        "omitManagedFields": True,
        "rules": [
            {
                "level": "RequestResponse",
                "verbs": _WRITES,
                "resources": [
                    {
                        "group": "batch",
                        "resources": ["jobs", "jobs/status", "cronjobs", "cronjobs/status"],
                    },
                    {
                        "group": "",
                        "resources": [
                            "pods",
                            "pods/status",
                            "pods/binding",
                            "pods/eviction",
                            "pods/ephemeralcontainers",
                            "pods/resize",
                        ],
                    },
                ],
            },
            {
                "level": "RequestResponse",
                "verbs": _WRITES,
                "resources": [
                    {
                        "group": "coordination.k8s.io",
                        "resources": ["leases"],
                        "resourceNames": [CONTROLLER_MANAGER_LEASE],
                    },
                ],
            },
            {
                "level": "RequestResponse",
                "verbs": ["create", "update", "patch", "delete"],
                "resources": [{"group": "", "resources": ["namespaces"]}],
            },
            {"level": "None"},
        ],
    }
