"""What a bundle tells of its cluster beside objects: which version, and when it was collected.

| fact | where |
|---|---|
| version of the control plane | images of its pods; `gitVersion` (kubectl version, troubleshoot's cluster_version.json); `kubernetesVersion` (support-bundle-kit's metadata.yaml: Harvester, Longhorn, Rancher) |
| version of the nodes | `kubeletVersion` of Nodes: no newer than the control plane, so it is the last resort |
| time | must-gather's `timestamp`, support-bundle-kit's `bundleCreatedAt`, sos' `sos_commands/date/date` |
"""  # noqa: E501

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime

from msgspec import Struct

from tracekit.base.kube.timestamps import NS_PER_S, parse_rfc3339
from tracekit.trace.importers.yamls import is_yaml

_VERSION = rb"(v1\.\d+\.\d+[\w.+-]*)"
_IS = rb"[\"']?:\s*[\"']?"
#: Where a version stands, the best first, which word is always there, and in whose words. Nodes
#: name images of old versions, too, but not as what a container runs.
_VERSIONS = (
    (
        rb"image" + _IS + rb"[^\s\"']*kube-controller-manager:",
        b"kube-controller-manager:",
        "the controller manager's image",
    ),
    (
        rb"image" + _IS + rb"[^\s\"']*kube-apiserver:",
        b"kube-apiserver:",
        "the API server's image",
    ),
    (rb"Server Version:\s*", b"Server Version:", "what `kubectl version` printed"),
    (rb"gitVersion" + _IS, b"gitVersion", "a gitVersion of the server"),
    (rb"\bkubernetesVersion" + _IS, b"kubernetesVersion", "the bundle's kubernetesVersion"),
    (rb"kubeletVersion" + _IS, b"kubeletVersion", "the kubelets of its nodes"),
)
_PATTERNS = tuple((re.compile(where + _VERSION), word) for where, word, _ in _VERSIONS)
_CREATED = re.compile(rb"bundleCreatedAt" + _IS + rb"(\d{4}-\d\d-\d\dT[\d:.]+Z)")
_GO_TIME = re.compile(
    rb"^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d{1,9})?) \+0000 UTC", re.MULTILINE
)
_DATE = re.compile(rb"^[A-Z][a-z]{2} ([A-Z][a-z]{2} +\d+ [\d:]{8}) UTC (\d{4})", re.MULTILINE)
_IS_COMMAND = re.compile(r"(?:kubectl|oc)_(?:\S+_)?version").fullmatch
_KIT_METADATA = "metadata.yaml"
_FACTS = ("timestamp", "version", "date")


class Version(Struct, frozen=True):
    """A version of Kubernetes, and who says so."""

    text: str
    said_by: str


class Facts:
    """What the files of one bundle have told so far."""

    def __init__(self) -> None:
        self._versions: list[Counter[str]] = [Counter() for _ in _VERSIONS]
        #: When the collection had ended, Unix ns.
        self.collected_ns: int | None = None

    def take(self, name: str, head: bytes) -> bool:
        """Look at what a file begins with; whether its name says that it has but such facts."""
        last = name.rpartition("/")[2]
        # sos names a file after its command: kubectl_--kubeconfig_.etc.…_version.
        is_fact = last in _FACTS or last.startswith("cluster_version") or _IS_COMMAND(last)
        if is_fact or head.lstrip()[:1] in (b"{", b"[") or is_yaml(head):  # no log of a program
            self._take_version(head)
        at_ns = _created(head)
        if last == "timestamp" or name.endswith("sos_commands/date/date"):
            at_ns = _written(head)
        if at_ns is not None:
            self.collected_ns = max(at_ns, self.collected_ns or 0)
        return bool(is_fact) or (last == _KIT_METADATA and at_ns is not None)

    def _take_version(self, head: bytes) -> None:
        for (pattern, word), found in zip(_PATTERNS, self._versions, strict=True):
            versions = pattern.findall(head) if word in head else ()
            if versions:  # of a client and a server the server comes last
                found[versions[-1].decode()] += 1

    @property
    def version(self) -> Version | None:
        """The version of the control plane, as well as it is known."""
        for (*_, said_by), found in zip(_VERSIONS, self._versions, strict=True):
            if found:
                return Version(found.most_common(1)[0][0], said_by)
        return None


def _created(head: bytes) -> int | None:
    found = _CREATED.search(head)
    return parse_rfc3339(found.group(1).decode()) if found is not None else None


def _written(head: bytes) -> int | None:
    """The last time in a file of times."""
    stamps = [parse_rfc3339(f"{day.decode()}T{at.decode()}Z") for day, at in _GO_TIME.findall(head)]
    for text, year in _DATE.findall(head):
        try:
            at = datetime.strptime(f"{text.decode()} {year.decode()} +0000", "%b %d %H:%M:%S %Y %z")
        except ValueError:
            continue
        stamps.append(int(at.timestamp()) * NS_PER_S)
    return max((stamp for stamp in stamps if stamp is not None), default=None)
