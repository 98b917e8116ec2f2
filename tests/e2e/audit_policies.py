"""Audit policies to record under: ours, and those that logs in the wild are written with.

`provider` is the part about pods and batch of the policy that GCE's scripts set up and that GKE and
EKS follow (kubernetes/kubernetes: cluster/gce/gci/configure-helper.sh,
create-master-audit-policy): what kubelets write of pods is kept as the patch they sent.
"""

from typing import Any

from tracekit.record.operation.audit_policy import audit_policy

_OMIT = ["RequestReceived", "ResponseStarted"]
_NODE_WRITES = {
    "level": "Request",
    "verbs": ["update", "patch"],
    "resources": [{"group": "", "resources": ["nodes/status", "pods/status"]}],
}
_KNOWN = [
    {"group": group} for group in ("", "apps", "batch", "policy", "rbac.authorization.k8s.io")
]

FULL: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": _OMIT,
    "rules": [
        {"level": "None", "verbs": ["get", "list", "watch"]},
        {
            "level": "RequestResponse",
            "resources": [{"group": "", "resources": ["pods", "pods/*"]}, {"group": "batch"}],
        },
        {"level": "Metadata"},
    ],
}

PROVIDER: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": _OMIT,
    "rules": [
        {**_NODE_WRITES, "users": ["kubelet", "system:node-problem-detector"]},
        # The stand-in for the kubelet is of no group of its own: named here instead.
        {**_NODE_WRITES, "users": ["system:node:node-1"]},
        {
            "level": "Request",
            "users": ["system:serviceaccount:kube-system:namespace-controller"],
            "verbs": ["deletecollection"],
        },
        {
            "level": "None",
            "nonResourceURLs": ["/healthz*", "/readyz*", "/livez*", "/version", "/swagger*"],
        },
        {"level": "None", "resources": [{"group": "", "resources": ["events"]}]},
        {"level": "None", "verbs": ["get", "list", "watch"]},
        {"level": "RequestResponse", "resources": _KNOWN},
        {"level": "Metadata"},
    ],
}

REQUEST: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": _OMIT,
    "rules": [{"level": "None", "verbs": ["get", "list", "watch"]}, {"level": "Request"}],
}

POLICIES = {
    "full": FULL,
    "provider": PROVIDER,
    "request": REQUEST,
    "smallest": audit_policy(),
}
