"""Record a control plane over a store of another kind or release, and keep what the store holds.

    python -m tests.e2e.stores etcd@v3.6.16 --scenarios fixed-completions,ttl -o DIR
    python -m tests.e2e.stores kine@v0.17.5 --scenarios fixed-completions,ttl -o DIR

The store is built from the Go module proxy into the cache of the control planes. Beside the watch log and
the audit log, DIR gets `snapshot.db` (etcdctl snapshot save) or `state.db` (SQLite's own backup of
kine's database, as one file).
"""

import argparse
import logging
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from tests.e2e import generate
from tests.e2e.build import BuildError, cache_dir, run_go
from tests.e2e.cluster import Cluster

#: Module and program of each store, as it is built and as it is then called.
PROGRAMS = {
    "etcd": {"go.etcd.io/etcd/server/v3": "server", "go.etcd.io/etcd/etcdctl/v3": "etcdctl"},
    "kine": {"github.com/k3s-io/kine": "kine"},
}
_GO_MOD = "module example.com/tracekit/stores\n\ngo 1.24.0\n"


def ensure_store(kind: str, version: str) -> Path:
    """The folder with the store's programs, built if they are not there. CGO is off throughout."""
    target = cache_dir(f"{kind}-{version}")
    programs = PROGRAMS[kind]
    if all((target / program).is_file() for program in programs.values()):
        return target
    with tempfile.TemporaryDirectory(prefix=f"{kind}-") as scratch:
        folder = Path(scratch)
        imports = "\n".join(f'import _ "{module}"' for module in programs)
        (folder / "go.mod").write_text(_GO_MOD)
        (folder / "imports.go").write_text(f"//go:build never\n\npackage stores\n\n{imports}\n")
        run_go("get", *(f"{module}@{version}" for module in programs), cwd=folder)
        run_go("mod", "tidy", "-e", cwd=folder)
        run_go(
            "build", "-mod=mod", "-p", "1", "-trimpath", "-o", f"{target}/", *programs, cwd=folder
        )
    return target


class EtcdCluster(Cluster):
    """A control plane over an etcd of another release."""

    store: Path

    def _etcd_arguments(self) -> list[str]:
        return [str(self.store / "server"), *super()._etcd_arguments()[1:]]


class KineCluster(Cluster):
    """A control plane over kine and SQLite, as k3s has it."""

    store: Path

    @property
    def database(self) -> Path:
        """Where kine keeps everything."""
        return self.folder / "db" / "state.db"

    def _etcd_arguments(self) -> list[str]:
        self.database.parent.mkdir(exist_ok=True)
        address = self.etcd_url.removeprefix("http://")
        return [
            *(str(self.store / "kine"), f"--listen-address=tcp://{address}"),
            f"--endpoint=sqlite://{self.database}?_journal=WAL&cache=shared&_busy_timeout=30000",
            "--metrics-bind-address=0",
        ]

    def _etcd_ready(self) -> bool:
        host, port = self.etcd_url.removeprefix("http://").split(":")
        try:
            with socket.create_connection((host, int(port)), timeout=1):
                return True
        except ConnectionError:
            return False


def _keep_snapshot(store: Path, cluster: Cluster, made: Path) -> None:
    save = [str(store / "etcdctl"), f"--endpoints={cluster.etcd_url}", "snapshot", "save"]
    subprocess.run([*save, str(made / "snapshot.db")], check=True, capture_output=True)


def _keep_database(cluster: Cluster, made: Path) -> None:
    assert isinstance(cluster, KineCluster)
    with (
        closing(sqlite3.connect(cluster.database)) as live,
        closing(sqlite3.connect(made / "state.db")) as copy,
    ):
        live.backup(copy)


def main(arguments: Sequence[str] | None = None) -> int:
    """Record over the store that is named; the other options are those of `generate`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", help="KIND@VERSION: etcd@v3.6.16, kine@v0.17.5")
    chosen, rest = parser.parse_known_args(arguments)
    kind, _, version = chosen.store.partition("@")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        store = ensure_store(kind, version)
    except BuildError as error:
        logging.getLogger(__name__).error("%s", error)  # noqa: TRY400 (a user's error)
        return 2
    run = generate.options(rest)
    cluster = type(
        "StoreCluster", (EtcdCluster if kind == "etcd" else KineCluster,), {"store": store}
    )
    keep = partial(_keep_snapshot, store) if kind == "etcd" else _keep_database
    generate.generate(run, cluster, keep)
    shutil.rmtree(run.out / "db", ignore_errors=True)
    return 1 if run.errors else 0


if __name__ == "__main__":
    sys.exit(main())
