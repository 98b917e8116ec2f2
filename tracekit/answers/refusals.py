"""Why the API server refused a creation: by its own message, as Events and audit logs have it."""

from __future__ import annotations

import re
from collections.abc import Collection
from enum import Enum
from typing import Final

from tracekit.answers.words import named
from tracekit.base.kube.actors import controller_of
from tracekit.base.kube.quantities import quantity
from tracekit.base.kube.rights import missing_right


class Refusal(Enum):
    """What stood against a creation."""

    NAMESPACE_TERMINATING = "its namespace is being terminated"
    UNBOUNDED = "the quota wants requests and limits, which it has not"
    QUOTA = "exceeded quota"
    NEVER_FITS = "it asks for more than the quota has in all: it can never fit"
    LIMIT_RANGE = "a LimitRange of the namespace forbids it: it can never be admitted"
    NO_SERVICE_ACCOUNT = "its ServiceAccount is missing"
    NO_CLASS = "a class that it names is missing"
    POD_SECURITY = "the namespace's Pod Security level forbids it"
    WEBHOOK_UNREACHABLE = "an admission webhook cannot be called"
    WEBHOOK_DENIED = "an admission webhook denied it"
    POLICY = "an admission policy denied it"
    NO_CONSTRAINT = "no SecurityContextConstraints or PodSecurityPolicy that it may use allows it"
    NODE_SELECTOR = "its node selector contradicts the namespace's"
    PRIORITY = "its priority class is not permitted in the namespace"
    QUOTA_BUSY = "the quota was being counted: it is tried again"
    NAME_TAKEN = "an object of that name is there already"
    OWNER = "whoever creates it may not set an owner that blocks its deletion"
    NO_RIGHT = "its controller has no right to"
    NO_ANSWER = "the API server or its etcd did not answer in time"
    THROTTLED = "the API server has too many requests: it is tried again"
    NAME_TOO_LONG = "its name is too long"
    INVALID = "the object is not valid"
    OTHER = "the API server refuses it"


#: Words of the API server's messages, looked for in this order.
_WORDS: Final = (
    (Refusal.NAMESPACE_TERMINATING, ("because it is being terminated",)),
    (Refusal.UNBOUNDED, ("failed quota",)),
    (Refusal.QUOTA, ("exceeded quota", "limited to")),
    (Refusal.NO_SERVICE_ACCOUNT, ("error looking up service account",)),
    (Refusal.NO_CLASS, ("no PriorityClass with name", "RuntimeClass", "no StorageClass")),
    (Refusal.NO_CONSTRAINT, (
        "unable to validate against any security context constraint", "PodSecurityPolicy:",
    )),
    # Upstream: plugin/pkg/admission (podnodeselector, gc), and the resource quota's controller.go.
    (Refusal.NODE_SELECTOR, ("conflicts with its namespace",)),
    (Refusal.PRIORITY, ("priorityClass is not permitted",)),
    (Refusal.QUOTA_BUSY, (
        "Operation cannot be fulfilled on resourcequotas", "status unknown for quota",
    )),
    (Refusal.OWNER, ("cannot set blockOwnerDeletion",)),
    (Refusal.POD_SECURITY, ("violates PodSecurity",)),
    (Refusal.WEBHOOK_UNREACHABLE, ("failed calling webhook",)),
    (Refusal.WEBHOOK_DENIED, ("admission webhook",)),
    (Refusal.POLICY, ("ValidatingAdmissionPolicy",)),
    # Upstream: plugin/pkg/admission/limitranger.
    (Refusal.LIMIT_RANGE, (
        "usage per Container is", "usage per Pod is", "limit to request ratio per",
    )),
    (Refusal.NO_RIGHT, ("cannot create resource",)),
    # Upstream: k8s.io/apimachinery/pkg/api/errors (NewTimeoutError, …), etcd's rpctypes.
    (Refusal.THROTTLED, ("received too many requests", "Too many requests", "TooManyRequests")),
    (Refusal.NO_ANSWER, (
        "etcdserver:", "Timeout: request did not complete", "return a response in the time",
        "TLS handshake timeout", "connection refused", "i/o timeout", "unexpected EOF",
        "client connection lost", "context deadline exceeded", "evaluation timed out",
    )),
    (Refusal.NAME_TOO_LONG, ("must be no more than 63", "must be no more than 253")),
    (Refusal.INVALID, ("is invalid",)),
    (Refusal.NAME_TAKEN, ("already exists",)),
)  # fmt: skip

#: What to do about a creation that was refused.
ADVICE: Final = {
    Refusal.NAMESPACE_TERMINATING: "Nothing can be created in it any more: see who deleted the "
    "namespace, and what its finalizers wait for.",
    Refusal.UNBOUNDED: "Give each container of the template (sidecars, too) the requests and "
    "limits that the message names, or the namespace a LimitRange with defaults.",
    Refusal.QUOTA: "Free the quota or raise it, or ask for less.",
    Refusal.NEVER_FITS: "Raise the quota's hard limit above what one asks for, or ask for less (a "
    "Job's template cannot be changed: delete it and create it anew). To wait, or to free some of "
    "the quota, does not help.",
    Refusal.LIMIT_RANGE: "Ask for what the LimitRange allows (kubectl describe limitrange). To "
    "wait does not help; a Job's template cannot be changed: delete it and create it anew.",
    Refusal.NO_SERVICE_ACCOUNT: "Create the ServiceAccount that the message names, or correct "
    "serviceAccountName.",
    Refusal.NO_CLASS: "Create the class that the message names; or, as a Job's template cannot be "
    "changed, delete the Job and create it with one that exists.",
    Refusal.POD_SECURITY: "Give the pod template the securityContext that the message asks for, or "
    "the namespace another label pod-security.kubernetes.io/enforce.",
    Refusal.WEBHOOK_UNREACHABLE: "Repair what serves the webhook that the message names, or let it "
    "not look at this namespace; failurePolicy Ignore lets objects pass while it is away.",
    Refusal.WEBHOOK_DENIED: "Change the pod template as the webhook's message says.",
    Refusal.POLICY: "Change the pod template, or the policy's binding, as the message says.",
    Refusal.NO_CONSTRAINT: "Give its ServiceAccount the right to use one that allows it "
    "(OpenShift: oc adm policy add-scc-to-user), or the template a securityContext that one "
    "allows.",
    Refusal.NODE_SELECTOR: "Correct nodeSelector of the template, or the namespace's annotation "
    "scheduler.alpha.kubernetes.io/node-selector.",
    Refusal.PRIORITY: "Use another priorityClassName, or give the namespace a ResourceQuota whose "
    "scope PriorityClass permits it.",
    Refusal.QUOTA_BUSY: "It goes by itself: the quota's use was written by others at that time. If "
    "it stays so, see whether the resource quota controller runs.",
    Refusal.NAME_TAKEN: "See whose the object is that has the name (kubectl get -o yaml), and "
    "delete or rename one of them.",
    Refusal.OWNER: "Give whoever creates it the right to update the finalizers of the owner's kind "
    "(the admission plugin OwnerReferencesPermissionEnforcement asks for it).",
    Refusal.NO_RIGHT: "Give the controller its right back (ClusterRole system:controller:…).",
    Refusal.NO_ANSWER: "The controller tries again by itself. Look at the API server and at etcd "
    "(load, slow disks, changes of its leader), and at admission webhooks that take long to answer "
    "(kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations).",
    Refusal.THROTTLED: "The controller tries again by itself. See who sends so many requests "
    "(apiserver_flowcontrol_rejected_requests_total by flow schema), and slow that down.",
    Refusal.NAME_TOO_LONG: "Delete it, and create it with a shorter name: pods of an Indexed Job "
    "are NAME-INDEX, Jobs of a CronJob NAME-MINUTES, 63 characters at most.",
    Refusal.INVALID: "Delete the Job, and create it without what the message names.",
}  # fmt: skip


#: A field of the object and what validation says of it; the value between may be a dump of Go's.
_OBJECTION: Final = re.compile(r" is invalid: \[?(?P<field>[\w.\[\]/*-]+): (?P<rest>.*)", re.DOTALL)
_NEXT_FIELD: Final = re.compile(r", (?=[a-z]\w*\.[\w.\[\]/-]+: )")
#: A choice: so much of what validation says stands in a claim.
_OBJECTION_CHARS: Final = 120


def objection(message: str) -> str:
    """The first field that a 422 objects to, and why: `spec.x: Required value`; else its words."""
    found = _OBJECTION.search(message)
    if found is None:
        return (
            message.partition(" is invalid: ")[2][:_OBJECTION_CHARS] or message[:_OBJECTION_CHARS]
        )
    rest = _NEXT_FIELD.split(found["rest"])[0].rstrip("]")
    dump, brace, after = rest.rpartition("}: ")
    if brace and "{" in dump:  # a value of several fields
        rest = after
    return f"{found['field']}: {rest[:_OBJECTION_CHARS]}"


def refusal_of(message: str) -> Refusal:
    """What a message says; `OTHER` where it is none of the known ones."""
    for refusal, words in _WORDS:
        if any(word in message for word in words):
            never = refusal is Refusal.QUOTA and never_fits(message)
            return Refusal.NEVER_FITS if never else refusal
    return Refusal.OTHER


#: Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go.
_QUOTA_SAYS: Final = re.compile(
    r"exceeded quota: [^,]+, requested: (?P<asked>.*?), used: .*?, limited: (?P<hard>\S+)"
)


def never_fits(message: str) -> list[tuple[str, str, str]]:
    """Resources of which one object asks for more than a quota has in all: name, asked, hard."""
    found = _QUOTA_SAYS.search(message)
    if found is None:
        return []
    asked, hard = _amounts(found["asked"]), _amounts(found["hard"])
    return [
        (name, text, hard[name])
        for name, text in asked.items()
        if (wanted := quantity(text)) is not None
        and (limit := quantity(hard.get(name, ""))) is not None
        and wanted > limit
    ]


def _amounts(text: str) -> dict[str, str]:
    """`cpu=1,memory=2Gi`, by name."""
    pairs = (part.strip().partition("=") for part in text.split(","))
    return {name: amount for name, _, amount in pairs if amount}


#: Upstream: pkg/quota/v1/evaluator/core (pods): the quota `pods` leaves out those that have ended,
#: `count/pods` and the like do not.
_COUNTED: Final = (
    "Raise the quota, or delete what has ended: it counts until it is deleted (by hand, or by "
    "ttlSecondsAfterFinished)."
)


#: A quota of scope BestEffort counts pods without any request or limit. Upstream:
#: k8s.io/api/core/v1 (ResourceQuotaScopeBestEffort).
_NONE_AT_ALL: Final = (
    "That quota lets none in at all, so to wait does not help. Raise the quota's hard limit, or, "
    "where kubectl describe quota shows the scope BestEffort, set requests or limits on their "
    "containers: then it does not count the pods."
)


#: Containers that a message names. Upstream: k8s.io/pod-security-admission/policy, and the
#: resource quota's evaluator of pods.
_OF_CONTAINERS: Final = re.compile(r'\bcontainers? ((?:"[^"]+"(?:, )?)+)')
_FOR_CONTAINERS: Final = re.compile(r"must specify .*", re.DOTALL)
_QUOTED: Final = re.compile(r'"([^"]+)"')
_FOR: Final = re.compile(r" for: ([\w.,-]+)")
#: What validation says of an init container that lost its restartPolicy.
_NO_SIDECARS: Final = "may not be set for init containers without restartPolicy=Always"
_SIDECARS: Final = (
    "A native sidecar lost its restartPolicy: the API server is older than 1.29 or has the gate "
    "SidecarContainers off, or what changes pods on the way drops the field. Let what injects it "
    "make a regular container (Istio: ENABLE_NATIVE_SIDECARS=false), or upgrade."
)


def _containers_named(message: str) -> list[str]:
    """The containers that a message names, each once."""
    found = [name for part in _OF_CONTAINERS.findall(message) for name in _QUOTED.findall(part)]
    if (lacks := _FOR_CONTAINERS.search(message)) is not None:
        found += [name for part in _FOR.findall(lacks[0]) for name in part.split(",") if name]
    return list(dict.fromkeys(found))


def refusal_advice_for(message: str, own: Collection[str]) -> str:
    """The same of pods whose template has the containers `own`: others are put in on the way."""
    names = _containers_named(message)
    foreign = [name for name in names if name not in own]
    if not foreign or not own:
        return refusal_advice(message)
    first = (
        f"The template has no container {named(foreign)}: an admission webhook adds it, and has to "
        "give it what the message asks for, or to leave these pods out (by a label or annotation "
        "of the program that the webhook is of)."
    )
    return first if len(foreign) == len(names) else f"{first} {refusal_advice(message)}"


def refusal_advice(message: str) -> str:
    """What to do about that refusal."""
    if _NO_SIDECARS in message:
        return _SIDECARS
    if (right := missing_right(message)) is not None and not controller_of(right.user, None):
        return right.todo
    found, quota = refusal_of(message), _QUOTA_SAYS.search(message)
    asked = {} if quota is None else _amounts(quota["asked"])
    if found is Refusal.QUOTA and asked and all(name.startswith("count/") for name in asked):
        return _COUNTED
    if found is Refusal.NEVER_FITS and any(hard == "0" for _, _, hard in never_fits(message)):
        return _NONE_AT_ALL
    return ADVICE.get(found, "Repair what the message objects to.")
