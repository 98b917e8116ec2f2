"""What is stored is read once, and read anew where it has changed."""

from __future__ import annotations

from typing import Any

from tracekit.base.kube.views import job_from_raw, pod_from_raw
from tracekit.base.sim.clock import VirtualClock
from tracekit.base.sim.loop import Loop
from tracekit.model.cluster.api_server import ApiServer
from tracekit.model.cluster.store import Raw, Store
from tracekit.model.process.lifetime import Life
from tracekit.model.process.pod_index import PodInformer
from tracekit.model.simulate.draws import SeededDraws
from tracekit.versions.api_server import ApiRules
from tracekit.versions.era import Era
from tracekit.versions.status_validation import StatusValidation

DRAWS = SeededDraws(1)


def server() -> ApiServer:
    era = Era.resolve("v1.30.14")
    store = Store(Loop(VirtualClock(10**18)))
    made = ApiServer(store, ApiRules.of(era), StatusValidation.of(era), DRAWS)
    made.create("namespaces", {"metadata": {"name": "shop"}})
    return made


def pod(name: str, **labels: str) -> Raw:
    meta = {"namespace": "shop", "name": name, "labels": labels}
    return {"metadata": meta, "spec": {"containers": [{"name": "main"}]}}


def test_a_write_shares_what_it_leaves_alone() -> None:
    api = server()
    spec = {"template": {"spec": {"containers": [{"name": "main"}]}}}
    meta = {"namespace": "shop", "name": "one"}
    made = api.create("jobs", {"metadata": meta, "spec": spec}).obj
    assert made is not None

    def labelled(obj: Raw) -> None:
        obj["metadata"]["labels"] = {"a": "b"}

    def wider(obj: Raw) -> None:
        obj["spec"]["parallelism"] = 2

    second = api.change("jobs", "shop", "one", labelled).obj
    third = api.change("jobs", "shop", "one", wider).obj
    assert second is not None
    assert third is not None
    views = [api.views.job(raw) for raw in (made, second, third)]
    assert views[0].spec is views[1].spec
    assert [view.spec.parallelism for view in views] == [1, 1, 2]
    assert views == [job_from_raw(raw) for raw in (made, second, third)]
    assert api.views.job(third) is views[2]
    assert "a" not in made["metadata"].get("labels", {})


def test_pods_are_read_as_without_memory() -> None:
    api = server()
    made = api.create("pods", pod("one")).obj
    assert made is not None

    def ended(obj: Raw) -> None:
        obj["status"] = {"phase": "Failed", "containerStatuses": [{"name": "main"}]}

    def bound(obj: Raw) -> None:
        obj["spec"]["nodeName"] = "node-1"

    rows: list[Any] = [made]
    rows += [api.change("pods", "shop", "one", change).obj for change in (bound, ended)]
    assert [api.views.pod(row) for row in rows] == [pod_from_raw(row) for row in rows]
    assert [pod_from_raw(row).phase for row in rows] == ["Pending", "Pending", "Failed"]


def test_a_selector_finds_pods_by_their_label_now() -> None:
    api = server()
    informer = PodInformer(Life(api.store.loop), api, DRAWS)
    informer.start(lambda: None)
    uid = "controller-uid"
    for name, labels in (("one", {uid: "u1"}), ("two", {uid: "u2"}), ("three", {"app": "x"})):
        api.create("pods", pod(name, **labels))

    def relabelled(obj: Raw) -> None:
        obj["metadata"]["labels"] = {uid: "u2"}

    def names(selector: dict[str, Any] | None) -> list[str]:
        api.store.loop.run_until(api.store.loop.now_ns + 10**9)
        return [found.name for found in informer.select("shop", selector)]

    assert names({"matchLabels": {uid: "u1"}}) == ["one"]
    api.change("pods", "shop", "one", relabelled)
    assert names({"matchLabels": {uid: "u1"}}) == []
    assert names({"matchLabels": {uid: "u2"}}) == ["two", "one"]
    assert names({"matchLabels": {uid: "u2", "app": "x"}}) == []
    assert names({"matchLabels": {"app": "x"}}) == ["three"]
    assert names({}) == ["one", "two", "three"]
    assert names(None) == []
    api.delete("pods", "shop", "two", grace_s=0)
    assert names({"matchLabels": {uid: "u2"}}) == ["one"]
