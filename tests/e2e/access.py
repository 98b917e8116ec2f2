"""Who may read what: RBAC rules for the users of a test cluster, and etcd's compaction."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import urllib3

from tests.e2e.api import Api

RBAC = "rbac.authorization.k8s.io"
READ = ("get", "list", "watch")


def read_rules(by_group: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """Return rules that allow reading the resources of each API group."""
    return [
        {"apiGroups": [group], "resources": list(resources), "verbs": list(READ)}
        for group, resources in by_group.items()
    ]


def grant(admin: Api, user: str, rules: list[dict[str, Any]], *, namespace: str = "") -> None:
    """Give `user` a role of its own, for one namespace or for the whole cluster."""
    kind = "Role" if namespace else "ClusterRole"
    where = f"/apis/{RBAC}/v1" + (f"/namespaces/{namespace}" if namespace else "")
    meta = {"name": f"e2e-{user}"}
    admin.create(f"{where}/{kind.lower()}s", {"metadata": meta, "rules": rules})
    binding = {
        "metadata": meta,
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": meta["name"]},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
    }
    admin.create(f"{where}/{kind.lower()}bindings", binding)


def compact(etcd_url: str) -> int:
    """Compact etcd up to its newest revision and return that.

    The API server still serves a watch from an older revision out of its memory; restart it after
    this and such a watch gets 410 Gone.
    """
    pool = urllib3.PoolManager(retries=False)
    first_key = {"key": "AA==", "limit": "1"}
    found = pool.request("POST", f"{etcd_url}/v3/kv/range", body=orjson.dumps(first_key))
    revision = int(orjson.loads(found.data)["header"]["revision"])
    body = orjson.dumps({"revision": str(revision), "physical": True})
    done = pool.request("POST", f"{etcd_url}/v3/kv/compaction", body=body)
    if done.status != 200:
        raise RuntimeError(f"etcd refused to compact: {done.data.decode()}")
    return revision
