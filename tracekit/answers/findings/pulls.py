"""TK404: an image that does not come, in which container, and in the registry's words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from tracekit.answers.endings import containers_of, pod_spec
from tracekit.answers.harm import FAILS_OR_HOLDS
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.remedies import of_pull
from tracekit.answers.trace_model import Facts, Job, Pod
from tracekit.answers.words import clock, shortened

PULLS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
          "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed")  # fmt: skip

PULL = Rule(
    "TK404", "its image cannot be pulled", Severity.WARNING,
    "A container of a pod that never ran was last seen waiting with the reason ErrImagePull, "
    "ImagePullBackOff, ErrImageNeverPull or InvalidImageName; the Job failed or is not done.",
    "A registry that was away for a moment at the end of the record.",
    "Check the image's name, its tag and the pull secret.",
    rank=16, losses=FAILS_OR_HOLDS,
)  # fmt: skip


#: Of the kubelet's Event FailedToRetrieveImagePullSecret: the names of the secrets that it lacks.
#: Upstream: pkg/kubelet/kubelet_pods.go (getPullSecretsForPod).
_LACKED: Final = re.compile(r"image pull secrets \(([^()]+)\)")


class Unpulled(Struct, frozen=True):
    """A pod, and its container that waits for an image, with the kubelet's reason."""

    pod: Pod
    container: str
    reason: str
    is_init: bool = False


def unpulled(job: Job) -> Unpulled | None:
    """The first pod that never ran for want of an image."""
    return next((found for pod in job.pods if (found := unpulled_pod(pod)) is not None), None)


def unpulled_pod(pod: Pod) -> Unpulled | None:
    """The container of a pod that never ran for want of an image."""
    waits = [c for s in pod.states for c in s.row["containers"] or () if c["state"] == "waiting"]
    if pod.ran_at_all or not waits:
        return None
    # The others of the pod wait for it: the kubelet says PodInitializing of them.
    last = [c for c in pod.last.row["containers"] or () if c["state"] == "waiting"] or waits
    found = next((c for c in last if c["reason"] in PULLS), None)
    if found is None and waits[-1]["reason"] in PULLS:
        found = waits[-1]
    if found is None:
        return None
    return Unpulled(pod, str(found["name"]), str(found["reason"]), bool(found["init"]))


def unpulled_case(facts: Facts, job: Job, found: Unpulled, until_ns: int) -> Case:
    """The case of a Job with what `unpulled` found."""
    name, container, reason = found.pod.name, found.container, found.reason
    pull = pull_of(facts, found, pod_spec(job))
    image, lacked, message = pull.image, pull.lacked, pull.message
    of_secrets = "" if lacked is None else f"; no imagePullSecret {lacked} in {job.namespace}"
    return Case(
        PULL,
        job.target,
        pull.claim + (", and failed" if job.failure is not None else ""),
        found.pod.created_ns,
        until_ns,
        f"{'init ' * found.is_init}container {container} of {name} waited from "
        f"{clock(found.pod.created_ns)} on, never ran "
        f"({reason}; that never counts toward backoffLimit){of_secrets}"
        + (f": {shortened(message)}" if message else ""),
        job.cronjob,
        evidence={"pod": name, "container": container, "image": image, "reason": reason,
                  "message": message or None, "secrets_missing": lacked},
        todo=pull.todo,
    )  # fmt: skip


class Pull(Struct, frozen=True):
    """What is said of an image that does not come, and what to do."""

    claim: str
    image: str | None
    message: str
    #: The imagePullSecrets that are missing.
    lacked: str | None
    todo: str


def pull_of(facts: Facts, found: Unpulled, template: Mapping[str, Any]) -> Pull:
    """That, by the registry's words; the template is of the Job that the pod is of, if any."""
    message = _registry_says(facts, found.pod) or _kubelet_says(facts, found)
    image, lacked = _image_of(template, found.pod, found.container), _lacked(facts, found.pod)
    which = f" {image}" if image else ""
    claim = {
        "InvalidImageName": f"its image's name is not valid: {image}",
        "ErrImageNeverPull": f"its image{which} is not on the node, and it may not pull it",
    }.get(found.reason, f"cannot pull its image{which}")
    return Pull(claim, image, message, lacked, of_pull(f"{found.reason} {message}", lacked))


def _kubelet_says(facts: Facts, found: Unpulled) -> str:
    """The message of the container that waits, else of another one of its pod."""
    said = [n for n in facts.container_notes.get(found.pod.uid, ()) if n.get("message")]
    mine = [n for n in said if n.get("name") == found.container]
    return next((str(n["message"]) for n in (*mine, *said)), "")


def _registry_says(facts: Facts, pod: Pod) -> str:
    """The registry's own words, which an Event keeps when the status says back-off."""
    said = [
        str(event.row["message"])
        for event in facts.events_of_pod(pod)
        if event.row["reason"] in ("Failed", "InspectFailed", "ErrImageNeverPull")
        and str(event.row["message"] or "").startswith(("Failed to pull", "Failed to inspect"))
    ]
    return said[-1] if said else ""


def _lacked(facts: Facts, pod: Pod) -> str | None:
    """Names of the imagePullSecrets that the kubelet did not find, as it lists them."""
    for event in reversed(facts.events_of_pod(pod)):
        if event.row["reason"] == "FailedToRetrieveImagePullSecret":
            found = _LACKED.search(str(event.row["message"] or ""))
            return None if found is None else found[1]
    return None


def _image_of(template: Mapping[str, Any], pod: Pod, container: str) -> str | None:
    """The image of that container in the pod, else in the Job's template, else of its only one.

    What is injected into the pod stands in no template.
    """
    named = containers_of(template)
    mine = [
        c.get("image") for c in (*containers_of(pod.last.spec), *named)
        if c.get("name") == container
    ]  # fmt: skip
    only = [c.get("image") for c in named] if len(named) == 1 and not mine else []
    return next((str(image) for image in (*mine, *only) if image), None)
