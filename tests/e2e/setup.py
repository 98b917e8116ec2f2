"""What the tests of a recorder on a real control plane begin with: its rights, and a namespace."""

import yaml

from tests.e2e.access import RBAC
from tests.e2e.cluster import Cluster
from tests.e2e.recorder import tracekit
from tests.e2e.scene import Scene, Surroundings


def grant_printed(cluster: Cluster, *scope: str, user: str = "recorder") -> None:
    """Apply the roles that `tracekit manifests` prints for that scope, bound to a user.

    They get names of their own, so that several scopes can be given one after the other.
    """
    for document in yaml.safe_load_all(tracekit("manifests", *scope).stdout):
        kind, meta = document["kind"], document["metadata"]
        if not kind.startswith(("Role", "ClusterRole")):
            continue
        meta["name"] = "-".join((meta["name"], user, *(word.strip("-").lower() for word in scope)))
        if kind.endswith("Binding"):
            document["roleRef"]["name"] = meta["name"]
            document["subjects"] = [{"apiGroup": RBAC, "kind": "User", "name": user}]
        where = f"/apis/{RBAC}/v1"
        if "namespace" in meta:
            where += f"/namespaces/{meta['namespace']}"
        cluster.api().create(f"{where}/{kind.lower()}s", document)


def open_scene(cluster: Cluster, name: str) -> Scene:
    """A namespace of the cluster in which an administrator and a user create and edit."""
    around = Surroundings(
        admin=cluster.api("admin", agent="e2e-admin", pool_size=10),
        alice=cluster.api("alice", agent="kubectl-alice", pool_size=10),
        minor=cluster.minor,
        gates={},
        seconds=30,
    )
    scene = Scene(around=around, name=name)
    scene.open()
    return scene
