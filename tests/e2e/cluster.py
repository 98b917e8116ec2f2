"""A real control plane on loopback: etcd, kube-apiserver and kube-controller-manager.

Each is a process of its own that can be killed and started again by name while the others run.
All are children that end with this process, so that a killed test run leaves nothing behind; nothing is ever ended by name. The state lives in one folder.
"""

import json
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import urllib3

from tests.e2e import keys
from tests.e2e.api import Api, ApiError, Credentials, namespaced
from tests.e2e.audit_policies import FULL
from tests.e2e.build import DEFAULT_VERSION, ensure, etcd_path
from tests.e2e.processes import free_ports, spawn

ETCD, API_SERVER, CONTROLLER_MANAGER = "etcd", "kube-apiserver", "kube-controller-manager"
CONTROLLERS = (
    "job",
    "cronjob",
    "ttl-after-finished",
    "garbagecollector",
    "namespace",
    "resourcequota",
    "serviceaccount-token",
    "podgc",
)
ISSUER = "https://kubernetes.default.svc"
ADVERTISED = "192.0.2.2"  # TEST-NET-1: the server refuses to advertise a loopback address
START_SECONDS_MAX = 90.0
LEASE_LOST_SECONDS = 4.0  # longer than a controller manager tries to renew its lease
STOP_SECONDS_MAX = 4.0  # the API server waits for watches to end; its audit log is synchronous


class ClusterError(Exception):
    """The control plane did not come up; the sentence names the log to read."""


@dataclass(kw_only=True)
class Cluster:
    """Starts, kills, restarts and stops the three processes."""

    folder: Path
    version: str = DEFAULT_VERSION
    feature_gates: str = ""  # A=true,B=false, for both programs
    kcm_flags: Sequence[str] = ()
    api_flags: Sequence[str] = ()
    etcd_flags: Sequence[str] = ()
    controllers: Sequence[str] = CONTROLLERS
    audit_policy: Mapping[str, Any] = field(default_factory=lambda: FULL)
    users: dict[str, Credentials] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Choose ports and tokens; nothing runs yet."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder = self.folder.resolve()
        self._ports = dict(
            zip(
                ("client", "peer", API_SERVER, CONTROLLER_MANAGER),
                free_ports(4),
                strict=True,
            )
        )
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.relay = ""  # the URL through which the controller manager goes, if not directly
        self.history: list[dict[str, str | float]] = []  # what was started and ended, and when
        masters = ("system:masters",)
        self.add_user("admin", masters)
        self.add_user("alice", masters)
        self.add_user("system:node:node-1", masters)  # the stand-in for the kubelet
        # Its own role knows no Leases before 1.17; its controllers act as service accounts anyway.
        self.add_user("system:kube-controller-manager", masters if self.minor < 17 else ())
        self.add_user("recorder")

    # Users

    def add_user(self, name: str, groups: Sequence[str] = ()) -> Credentials:
        """Add a user; must happen before `start`, because the server reads tokens once."""
        made = Credentials(user=name, token=secrets.token_hex(16), groups=tuple(groups))
        self.users[name] = made
        return made

    def api(
        self, user: str = "admin", *, agent: str = "e2e", pool_size: int = 8, patient: bool = False
    ) -> Api:
        """Return a client that acts as `user`."""
        return Api(
            self.server,
            self.users[user].token,
            ca_file=str(self.ca_file),
            agent=agent,
            pool_size=pool_size,
            patient=patient,
        )

    def kubeconfig(
        self, user: str = "admin", namespace: str = "default", *, server: str = ""
    ) -> Path:
        """Write a kubeconfig for `user` (JSON, which is YAML) and return its path."""
        port = server.rpartition(":")[2]  # a file for each server that the user works at
        path = self.folder / "-".join(("kubeconfig", user.replace(":", "-"), port)).rstrip("-")
        context = {"cluster": "e2e", "user": user, "namespace": namespace}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "e2e",
            "clusters": [
                {
                    "name": "e2e",
                    "cluster": {
                        "server": server or self.server,
                        "certificate-authority": str(self.ca_file),
                    },
                }
            ],
            "contexts": [{"name": "e2e", "context": context}],
            "users": [{"name": user, "user": {"token": self.users[user].token}}],
        }
        path.write_text(json.dumps(config))
        return path

    # Places

    @property
    def server(self) -> str:
        """The API server's URL."""
        return f"https://127.0.0.1:{self._ports[API_SERVER]}"

    @property
    def ca_file(self) -> Path:
        """The certificate that the API server and the controller manager show."""
        return self.folder / keys.CERTIFICATE

    @property
    def etcd_url(self) -> str:
        """The client URL of etcd, for compaction tests."""
        return f"http://127.0.0.1:{self._ports['client']}"

    @property
    def audit_log(self) -> Path:
        """The API server's audit log, JSON lines."""
        return self.folder / "audit.log"

    @property
    def minor(self) -> int:
        """M of v1.M.P."""
        return int(self.version.split(".")[1])

    def pid(self, name: str) -> int:
        """Return the process id of a running program."""
        return self._processes[name].pid

    # Life

    def start(self) -> None:
        """Start all three and wait until the controllers work."""
        self._write_files()
        for name in (ETCD, API_SERVER, CONTROLLER_MANAGER):
            self.start_process(name)
        self.wait_controllers()

    def start_process(self, name: str) -> None:
        """Start one program (again) and wait until it answers; controllers may wait for a lease."""
        arguments = {
            ETCD: self._etcd_arguments,
            API_SERVER: self._api_server_arguments,
            CONTROLLER_MANAGER: self._controller_manager_arguments,
        }[name]()
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = spawn(arguments, log.fileno())
        self._remember(name, "started")
        ready: dict[str, Callable[[], bool]] = {
            ETCD: self._etcd_ready,
            API_SERVER: self._api_server_ready,
            CONTROLLER_MANAGER: self._controller_manager_alive,
        }
        self._wait(name, ready[name])

    def kill(self, name: str) -> None:
        """End one program at once (kill -9)."""
        self._end(name, signal.SIGKILL)

    def terminate(self, name: str) -> None:
        """End one program the polite way."""
        self._end(name, signal.SIGTERM)

    def restart(self, name: str, *, away_seconds: float = 0.0) -> list[str]:
        """Kill -9 one program and start it again; return what else had to be started again."""
        self.kill(name)
        time.sleep(away_seconds)
        self.start_process(name)
        if name == CONTROLLER_MANAGER:
            return []
        time.sleep(LEASE_LOST_SECONDS)
        return self.revive()

    def revive(self) -> list[str]:
        """Start what ended by itself, as a node would, and name it.

        A controller manager that cannot renew its lease for 3 s ends: a restart of the API server
        takes it along.
        """
        ended = [name for name, process in self._processes.items() if process.poll() is not None]
        for name in ended:
            self._remember(name, "found ended")
            self.start_process(name)
        return ended

    def add_process(self, name: str, arguments: list[str], ready: Callable[[], bool]) -> None:
        """Start a program beside the control plane and wait until it is ready."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = spawn(arguments, log.fileno())
        self._remember(name, "started")
        self._wait(name, ready)

    def start_second_server(self) -> str:
        """Start another API server on the same etcd, with an audit log of its own; its URL."""
        (port,) = free_ports(1)
        name = f"{API_SERVER}-2"
        changed = {"--secure-port": str(port), "--audit-log-path": f"{self.audit_log}-2"}
        arguments = [
            f"{flag}={changed.get(flag, value)}" if value else flag
            for flag, _, value in (a.partition("=") for a in self._api_server_arguments())
        ]
        url = f"https://127.0.0.1:{port}"
        pool = urllib3.PoolManager(retries=False, ca_certs=str(self.ca_file))
        self.add_process(
            name, arguments, lambda: pool.request("GET", f"{url}/readyz", timeout=2).status == 200
        )
        return url

    def stop(self) -> None:
        """End everything, controllers first."""
        for name in set(self._processes) - {CONTROLLER_MANAGER, API_SERVER, ETCD}:
            self.kill(name)
        for name in (CONTROLLER_MANAGER, API_SERVER, ETCD):
            if name in self._processes:
                self.terminate(name)

    def wait_controllers(self) -> None:
        """Wait until a controller manager holds the lease and its controllers have started."""
        admin = self.api()
        path = namespaced("coordination.k8s.io/v1/leases", "kube-system", CONTROLLER_MANAGER)
        account = namespaced("serviceaccounts", "kube-system", "job-controller")

        def leading() -> bool:
            held = bool(admin.get(path)["spec"].get("holderIdentity"))
            return held and bool(admin.get(account))

        self._wait(CONTROLLER_MANAGER, leading)

    def __enter__(self) -> Self:
        """Start; what did start is ended if something does not."""
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        self.stop()

    # Arguments

    def _etcd_arguments(self) -> list[str]:
        peer = f"http://127.0.0.1:{self._ports['peer']}"
        return [
            *(str(etcd_path()), "--name=e2e", f"--data-dir={self.folder / 'etcd'}"),
            *(f"--listen-client-urls={self.etcd_url}", f"--advertise-client-urls={self.etcd_url}"),
            *(f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}"),
            *(f"--initial-cluster=e2e={peer}", "--unsafe-no-fsync", "--log-level=warn"),
            *self.etcd_flags,
        ]

    def _api_server_arguments(self) -> list[str]:
        arguments = [
            str(ensure(self.version) / API_SERVER),
            f"--etcd-servers={self.etcd_url}",
            f"--secure-port={self._ports[API_SERVER]}",
            "--bind-address=127.0.0.1",
            f"--advertise-address={ADVERTISED}",
            *self._serving(),
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--service-account-key-file={self.folder / keys.SERVICE_ACCOUNT_KEY}",
            f"--service-account-signing-key-file={self.folder / keys.SERVICE_ACCOUNT_KEY}",
            f"--service-account-issuer={ISSUER}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            f"--audit-policy-file={self.folder / 'audit-policy.json'}",
            f"--audit-log-path={self.audit_log}",
            "--audit-log-mode=blocking-strict",
            *self._gates(),
        ]
        if self.minor < 24:
            arguments.append("--insecure-port=0")
        if self.minor < 20:
            arguments.append(f"--api-audiences={ISSUER}")
        return [*arguments, *self.api_flags]

    def _controller_manager_arguments(self) -> list[str]:
        config = self.kubeconfig("system:kube-controller-manager", server=self.relay)
        arguments = [
            str(ensure(self.version) / CONTROLLER_MANAGER),
            f"--kubeconfig={config}",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={self.folder / keys.SERVICE_ACCOUNT_KEY}",
            f"--secure-port={self._ports[CONTROLLER_MANAGER]}",
            "--bind-address=127.0.0.1",
            *self._serving(),
            "--leader-elect=true",
            "--leader-elect-lease-duration=5s",
            "--leader-elect-renew-deadline=3s",
            "--leader-elect-retry-period=1s",
            f"--controllers={','.join(self.controllers)}",
            *self._gates(),
        ]
        if self.minor < 24:
            arguments.append("--port=0")
        if self.minor < 20:
            arguments.append("--leader-elect-resource-lock=leases")
        return [*arguments, *self.kcm_flags]

    def _serving(self) -> list[str]:
        key = self.folder / keys.CERTIFICATE_KEY
        return [f"--tls-cert-file={self.ca_file}", f"--tls-private-key-file={key}"]

    def _gates(self) -> list[str]:
        gates = [self.feature_gates] if self.feature_gates else []
        if self.minor < 21:
            gates.append("TTLAfterFinished=true")
        return [f"--feature-gates={','.join(gates)}"] if gates else []

    # Readiness

    def _etcd_ready(self) -> bool:
        answer = urllib3.PoolManager(retries=False).request("GET", f"{self.etcd_url}/health")
        return b'"true"' in answer.data

    def _api_server_ready(self) -> bool:
        admin = self.api()
        if self.minor >= 16:
            admin.get_text("/readyz")
        return bool(admin.get("/api/v1/namespaces/kube-system"))

    def _controller_manager_alive(self) -> bool:
        url = f"https://127.0.0.1:{self._ports[CONTROLLER_MANAGER]}/healthz"
        pool = urllib3.PoolManager(retries=False, ca_certs=str(self.ca_file))
        return pool.request("GET", url, timeout=2).status == 200

    def _wait(self, name: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        last = "nothing"
        while time.monotonic() < deadline:
            if self._processes[name].poll() is not None:
                raise ClusterError(f"{name} ended at start; read {self._tail(name)}")
            try:
                if ready():
                    return
            except (ApiError, urllib3.exceptions.HTTPError) as error:
                last = str(error)
            time.sleep(0.2)
        raise ClusterError(f"{name} is not ready ({last}); read {self._tail(name)}")

    def _tail(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        lines = path.read_text(errors="replace").splitlines()[-12:]
        return "\n".join([str(path), *lines])

    def _end(self, name: str, number: signal.Signals) -> None:
        process = self._processes.pop(name)
        self._remember(name, number.name)
        process.send_signal(number)
        try:
            process.wait(timeout=STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _remember(self, name: str, what: str) -> None:
        self.history.append({"program": name, "what": what, "at": time.time()})

    def _write_files(self) -> None:
        (self.folder / "audit-policy.json").write_text(json.dumps(self.audit_policy))
        rows = [
            f'{made.token},{made.user},uid-{number},"{",".join(made.groups)}"'
            for number, made in enumerate(self.users.values())
        ]
        (self.folder / "tokens.csv").write_text("\n".join(rows) + "\n")
        keys.make_keys(self.folder)
