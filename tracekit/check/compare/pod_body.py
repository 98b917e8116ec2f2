"""Does an observed pod have the body that the controller posts?

The API server and its admission plugins add fields of their own; each addition that is known is
named here. Anything else that differs is reported with its path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tracekit.base.kube.decode import as_items, as_map, as_text
from tracekit.base.kube.views import JobView, OwnerRef, PodView
from tracekit.check.compare.fields import FieldDifference
from tracekit.ports.actions import CreatePod
from tracekit.ports.job.body import GENERATED_SUFFIX, MAX_GENERATED_NAME

#: Fields of a pod spec that the API server or a built-in admission plugin fills in.
_SPEC_ADDITIONS = frozenset(
    {
        "dnsPolicy",
        "enableServiceLinks",
        "imagePullSecrets",  # ServiceAccount
        "nodeName",  # the scheduler, where the first state seen is already bound
        "overhead",  # RuntimeClass
        "preemptionPolicy",
        "priority",  # Priority
        "priorityClassName",
        "restartPolicy",
        "schedulerName",
        "securityContext",
        "serviceAccount",
        "serviceAccountName",
        "terminationGracePeriodSeconds",
    }
)
_CONTAINER_ADDITIONS = frozenset(
    {
        "imagePullPolicy",
        "resources",  # LimitRanger
        "securityContext",
        "terminationMessagePath",
        "terminationMessagePolicy",
    }
)
#: Tolerations of DefaultTolerationSeconds, TaintNodesByCondition and ExtendedResourceToleration.
_TOLERATION_KEYS = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/memory-pressure",
)
_TOKEN_VOLUME_PREFIXES = ("kube-api-access-", "default-token-")
_TOKEN_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path, no secret
#: Annotations that LimitRanger and PodSecurityPolicy leave behind.
_ANNOTATION_ADDITIONS = ("kubernetes.io/limit-ranger", "kubernetes.io/psp")


def pod_body_differences(
    intent: CreatePod,
    pod: PodView,
    spec: Mapping[str, Any],
    generate_name: str,
    *,
    finalizers: bool = True,
) -> list[FieldDifference]:
    """Every field in which the observed pod is not what the controller meant to post.

    `finalizers` is False where the first state seen may no longer have them.
    """
    found: list[FieldDifference] = []
    if generate_name != intent.generate_name:
        found.append(FieldDifference("metadata.generateName", intent.generate_name, generate_name))
    elif not _is_generated(pod.name, generate_name):
        what = f"{generate_name[:MAX_GENERATED_NAME]} and {GENERATED_SUFFIX} characters"
        found.append(FieldDifference("metadata.name", what, pod.name))
    if intent.labels != pod.labels:
        found += _map_differences("metadata.labels", intent.labels, pod.labels, ())
    if intent.annotations != pod.annotations:
        found += _map_differences(
            "metadata.annotations", intent.annotations, pod.annotations, _ANNOTATION_ADDITIONS
        )
    if finalizers and set(intent.finalizers) != set(pod.finalizers):
        found.append(
            FieldDifference("metadata.finalizers", list(intent.finalizers), list(pod.finalizers))
        )
    found += _spec_differences(intent.spec, spec)
    return found


def _is_generated(name: str, generate_name: str) -> bool:
    base = generate_name[:MAX_GENERATED_NAME]
    return name.startswith(base) and len(name) == len(base) + GENERATED_SUFFIX


def owner_of(job: JobView) -> OwnerRef:
    """The reference to its Job that the controller gives a pod."""
    return OwnerRef("Job", job.name, job.uid, "batch/v1", controller=True)


def owner_differences(job: JobView, owners: tuple[OwnerRef, ...]) -> list[FieldDifference]:
    """A pod that the controller posts has one owner: its Job."""
    expected = owner_of(job)
    if owners == (expected,):
        return []
    return [
        FieldDifference(
            "metadata.ownerReferences",
            [expected._asdict()],
            [owner._asdict() for owner in owners],
        )
    ]


def _map_differences(
    path: str, expected: Mapping[str, Any], observed: Mapping[str, Any], additions: tuple[str, ...]
) -> Iterator[FieldDifference]:
    for key in sorted({*expected, *observed}):
        if key not in expected and key in additions:
            continue
        if expected.get(key) != observed.get(key):
            yield FieldDifference(f"{path}[{key}]", expected.get(key), observed.get(key))


def _spec_differences(
    expected: Mapping[str, Any], observed: Mapping[str, Any]
) -> Iterator[FieldDifference]:
    # The server's default is true: what it adds is never false.
    off = observed.get("enableServiceLinks") is False
    additions = _SPEC_ADDITIONS - {"enableServiceLinks"} if off else _SPEC_ADDITIONS
    for key in _changed(expected, observed, additions):
        path, want, have = f"spec.{key}", expected.get(key), observed.get(key)
        if key == "enableServiceLinks" and key not in expected:
            yield FieldDifference(path, True, have)  # noqa: FBT003
        elif not _are_object_lists(want, have):
            yield FieldDifference(path, want, have)
        elif key in ("containers", "initContainers"):
            yield from _container_differences(path, want or [], have or [])
        elif key == "tolerations":
            yield from _list_differences(path, want or [], have or [], _is_default_toleration)
        elif key == "volumes":
            yield from _list_differences(path, want or [], have or [], _is_token_volume)
        else:
            yield FieldDifference(path, want, have)


def _changed(
    expected: Mapping[str, Any], observed: Mapping[str, Any], additions: frozenset[str]
) -> list[str]:
    """The fields that are not as expected, but for those that may be added."""
    changed = [key for key, want in expected.items() if observed.get(key) != want]
    changed += [
        key
        for key, have in observed.items()
        if key not in additions and key not in expected and have is not None
    ]
    return sorted(changed)


def _are_object_lists(*values: Any) -> bool:
    """Whether each is an array of objects, or absent."""
    for value in values:
        if value is None:
            continue
        if not isinstance(value, list):
            return False
        if len([item for item in value if isinstance(item, dict)]) < len(value):
            return False
    return True


def _list_differences(path: str, want: list[Any], have: list[Any], known: Any) -> Iterator[Any]:
    remaining = list(have)
    for item in want:
        if item in remaining:
            remaining.remove(item)
        else:
            yield FieldDifference(path, item, None)
    for item in remaining:
        if not known(item):
            yield FieldDifference(path, None, item)


def _is_default_toleration(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and (item.get("key") in _TOLERATION_KEYS or item.get("operator") == "Exists")
        and "key" in item
    )


def _is_token_volume(item: Any) -> bool:
    """Whether the ServiceAccount admission plugin adds such a volume."""
    if not isinstance(item, dict) or not ("projected" in item or "secret" in item):
        return False
    name = str(item.get("name", ""))
    return "-token-" in name or name.startswith(_TOKEN_VOLUME_PREFIXES)


def _container_differences(
    path: str, want: list[Any], have: list[Any]
) -> Iterator[FieldDifference]:
    if [c.get("name") for c in want] != [c.get("name") for c in have]:
        yield FieldDifference(path, [c.get("name") for c in want], [c.get("name") for c in have])
        return
    for expected, observed in zip(want, have, strict=True):
        if expected == observed:
            continue
        where = f"{path}[{expected.get('name')}]"
        for key in _changed(expected, observed, _CONTAINER_ADDITIONS):
            left, right = expected.get(key), observed.get(key)
            if key == "volumeMounts" and _are_object_lists(left, right):
                yield from _list_differences(
                    f"{where}.{key}",
                    left or [],
                    right or [],
                    lambda item: isinstance(item, dict) and item.get("mountPath") == _TOKEN_MOUNT,
                )
            elif key == "env" and _are_object_lists(left, right):
                yield from _env_differences(f"{where}.env", left or [], right or [])
            elif key == "resources" and _grown(left, right):
                continue
            else:
                yield FieldDifference(f"{where}.{key}", left, right)


def _grown(want: Any, have: Any) -> bool:
    """Whether a default (LimitRanger, requests from limits) was filled into resources."""
    if not isinstance(want, dict) or not isinstance(have, dict):
        return False
    return all(
        as_map(have.get(part)).get(name) == amount
        for part, amounts in want.items()
        if isinstance(amounts, dict)
        for name, amount in amounts.items()
    ) and all(have.get(k) == v for k, v in want.items() if not isinstance(v, dict))


def _without_api_version(entry: Any) -> Any:
    """The environment entry without the API version that the server writes into a field ref."""
    if not isinstance(entry, dict):
        return entry
    source = entry.get("valueFrom")
    if not isinstance(source, dict) or not isinstance(source.get("fieldRef"), dict):
        return entry
    field_ref = {k: v for k, v in source["fieldRef"].items() if k != "apiVersion"}
    return {**entry, "valueFrom": {**source, "fieldRef": field_ref}}


def _env_differences(path: str, want: list[Any], have: list[Any]) -> Iterator[FieldDifference]:
    left = [_without_api_version(entry) for entry in want]
    right = [_without_api_version(entry) for entry in have]
    if left == right:
        return
    by_name = {as_text(entry.get("name")): entry for entry in left}
    seen = {as_text(entry.get("name")): entry for entry in right}
    for name in sorted({*by_name, *seen}):
        if by_name.get(name) != seen.get(name):
            yield FieldDifference(f"{path}[{name}]", by_name.get(name), seen.get(name))
    if by_name == seen:
        yield FieldDifference(path, want, have)


def body_additions(template: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """What the API server and its admission plugins put into a pod beside its template, by path.

    They do the same to all pods of one template, unless somebody changes their settings in between.
    Names of token volumes are random and left out.
    """
    found = {
        f"spec.{key}": value
        for key, value in spec.items()
        if key not in template and key in _SPEC_ADDITIONS and key != "nodeName"
    }
    wanted = as_items(template.get("tolerations"))
    found["spec.tolerations"] = [t for t in as_items(spec.get("tolerations")) if t not in wanted]
    for group in ("containers", "initContainers"):
        pairs = zip(as_items(template.get(group)), as_items(spec.get(group)), strict=False)
        for expected, observed in pairs:
            where = f"spec.{group}[{as_text(observed.get('name'))}]"
            found |= {
                f"{where}.{key}": value
                for key, value in observed.items()
                if key in _CONTAINER_ADDITIONS and value != expected.get(key)
            }
    return found
