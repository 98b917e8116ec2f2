"""The controller manager: leader election, the shared informers, and the batch controllers.

One process at a time holds the lease; when it dies, a successor takes over once the lease has run
out, with empty memory and a fresh listing.

Upstream: cmd/kube-controller-manager/app/controllermanager.go, client-go
tools/leaderelection/leaderelection.go.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from tracekit.base.cron.zones import UTC, Zone
from tracekit.base.kube.cronjob_views import CronJobView
from tracekit.base.kube.leases import CONTROLLER_MANAGER_LEASE, CONTROLLER_MANAGER_LEASE_NAMESPACE
from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.base.kube.views import JobView
from tracekit.model.cluster.api_server import ApiServer
from tracekit.model.cluster.draws import Draws
from tracekit.model.cluster.store import Raw
from tracekit.model.process.client import Client
from tracekit.model.process.context import ControllerContext
from tracekit.model.process.cron_controllers import (
    PollingCronJobController,
    QueuedCronJobController,
)
from tracekit.model.process.informer import Informer
from tracekit.model.process.job_controller import JobController
from tracekit.model.process.lifetime import Life
from tracekit.model.process.pod_index import PodInformer
from tracekit.model.process.ttl_controller import TtlController
from tracekit.versions.cronjob import Controller, CronJobEra
from tracekit.versions.era import Era
from tracekit.versions.job import JobRules

LEASE_NS: Final = 15 * NS_PER_S
_RETRY_NS: Final = 2 * NS_PER_S


class ManagerFlags(Struct, frozen=True):
    """The flags of kube-controller-manager that decide how fast it is; None: the default."""

    kube_api_qps: int | None = None
    kube_api_burst: int | None = None
    concurrent_job_syncs: int | None = None
    concurrent_cron_job_syncs: int | None = None
    concurrent_ttl_syncs: int | None = None
    zone: Zone = UTC

    @property
    def written(self) -> tuple[str, ...]:
        """As the command line has them, but for those that are left to their defaults."""
        given = {
            "kube-api-qps": self.kube_api_qps,
            "kube-api-burst": self.kube_api_burst,
            "concurrent-job-syncs": self.concurrent_job_syncs,
            "concurrent-cron-job-syncs": self.concurrent_cron_job_syncs,
            "concurrent-ttl-after-finished-syncs": self.concurrent_ttl_syncs,
        }
        return tuple(f"--{name}={value}" for name, value in given.items() if value is not None)


class ControllerManager:
    """Every process of the controller manager in a run, one after the other."""

    def __init__(
        self,
        server: ApiServer,
        era: Era,
        flags: ManagerFlags,
        draws: Draws,
        *,
        renews_lease: bool = True,
    ) -> None:
        self._renews_lease = renews_lease
        self._server = server
        self._loop = server.store.loop
        self._era = era
        self._flags = flags
        self._draws = draws
        self._life: Life | None = None
        self._informers: list[Informer] = []  # type: ignore[type-arg]
        self._renewed_ns: int | None = None

    def start(self, *, at_once: bool = False) -> None:
        """Start a process; it leads as soon as nobody else's lease is valid, or at once."""
        life = Life(self._loop)
        free_ns = self._loop.now_ns
        if self._renewed_ns is not None and not at_once:
            free_ns = max(free_ns, self._renewed_ns + LEASE_NS)
        self._life = life
        life.at(free_ns, lambda: self._lead(life))

    def kill(self) -> None:
        """Let the process die, at once, in whatever it is doing."""
        if self._life is not None:
            self._life.end()
            self._life = None
        for informer in self._informers:
            informer.stop()
        self._informers = []

    def _lead(self, life: Life) -> None:
        self._acquire(life)
        draws, store = self._draws, self._server.store
        jobs: Informer[JobView] = Informer(life, store, "jobs", self._server.views.job, draws)
        pods = PodInformer(life, self._server, draws)
        cron_jobs: Informer[CronJobView] = Informer(
            life, store, "cronjobs", CronJobView.from_raw, draws
        )
        self._informers = [jobs, pods]
        flags, rules = self._flags, CronJobEra.of(self._era)
        context = self._context(life, flags.concurrent_job_syncs)
        starts = [JobController(context, jobs, pods, JobRules.of(self._era)).start]
        context = self._context(life, flags.concurrent_cron_job_syncs)
        if rules.controller is Controller.QUEUED:
            self._informers.append(cron_jobs)
            starts.append(
                QueuedCronJobController(context, cron_jobs, jobs, rules, flags.zone).start
            )
        else:
            starts.append(PollingCronJobController(context, rules, flags.zone).start)
        if rules.ttl:
            context = self._context(life, flags.concurrent_ttl_syncs)
            starts.append(TtlController(context, jobs).start)
        waiting = list(self._informers)

        def synced() -> None:
            if all(informer.synced for informer in waiting):
                for start in starts:
                    start()

        for informer in waiting:
            informer.start(synced)

    def _context(self, life: Life, workers: int | None) -> ControllerContext:
        """What one controller is started with: a client of its own, and so many workers."""
        constants = self._era.constants
        return ControllerContext(
            life,
            self._server,
            constants,
            self._draws,
            self._client(),
            workers or constants.workers,
        )

    def _client(self) -> Client:
        constants, flags = self._era.constants, self._flags
        qps = constants.client_qps if flags.kube_api_qps is None else flags.kube_api_qps
        burst = constants.client_burst if flags.kube_api_burst is None else flags.kube_api_burst
        return Client(self._loop, self._draws, qps=qps, burst=burst)

    # Leader election.

    def _acquire(self, life: Life) -> None:
        holder = f"controller-manager_{self._draws.uid()}"
        now_ns = self._loop.now_ns
        held = self._server.store.get(
            "leases", CONTROLLER_MANAGER_LEASE_NAMESPACE, CONTROLLER_MANAGER_LEASE
        )
        if held is None:
            spec = self._lease_spec(holder, now_ns, transitions=0)
            meta = {
                "name": CONTROLLER_MANAGER_LEASE,
                "namespace": CONTROLLER_MANAGER_LEASE_NAMESPACE,
            }
            self._server.create("leases", {"metadata": meta, "spec": spec})
        else:
            transitions = held["spec"]["leaseTransitions"] + 1

            def taken(obj: Raw) -> None:
                obj["spec"] = self._lease_spec(holder, now_ns, transitions=transitions)

            self._server.change(
                "leases",
                CONTROLLER_MANAGER_LEASE_NAMESPACE,
                CONTROLLER_MANAGER_LEASE,
                taken,
            )
        self._renewed_ns = now_ns
        if self._renews_lease:
            life.after(_RETRY_NS, lambda: self._renew(life))

    def _renew(self, life: Life) -> None:
        def renewed(obj: Raw) -> None:
            obj["spec"]["renewTime"] = _micro(self._loop.now_ns)

        self._server.change(
            "leases",
            CONTROLLER_MANAGER_LEASE_NAMESPACE,
            CONTROLLER_MANAGER_LEASE,
            renewed,
        )
        self._renewed_ns = self._loop.now_ns
        life.after(_RETRY_NS, lambda: self._renew(life))

    def _lease_spec(self, holder: str, now_ns: int, *, transitions: int) -> Raw:
        return {
            "holderIdentity": holder,
            "leaseDurationSeconds": LEASE_NS // NS_PER_S,
            "acquireTime": _micro(now_ns),
            "renewTime": _micro(now_ns),
            "leaseTransitions": transitions,
        }


def _micro(at_ns: int) -> str:
    """A `metav1.MicroTime`: six decimals, always."""
    text = format_rfc3339(at_ns - at_ns % 1000) or ""
    whole, _, rest = text.removesuffix("Z").partition(".")
    return f"{whole}.{rest:0<6}Z"
