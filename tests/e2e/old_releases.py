"""What an old Kubernetes release needs beyond its own go.mod to be built today.

Up to 1.23 the module that Kubernetes publishes lacks one generated file, the OpenAPI definitions
that its API server serves and keeps managedFields by. It is made with the generator that the
release itself pins: `go mod vendor` lays the sources out as the GOPATH that the generator expects,
and `go build -overlay` puts the file where the module cache must not be written to.
"""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

GENERATOR = "k8s.io/kube-openapi/cmd/openapi-gen"
PACKAGE = "k8s.io/kubernetes/pkg/generated/openapi"
FILE = "zz_generated.openapi.go"
MARK = re.compile(r"\+k8s:openapi-gen=true")

#: Runs `go` with further environment variables in a folder and returns what it printed.
Go = Callable[..., str]


@dataclass(frozen=True)
class Recipe:
    """How a release is built; the defaults are those of a release that needs nothing."""

    #: GOTOOLCHAIN: a Go near the release's own, which the module proxy serves; "" is Go on PATH.
    toolchain: str = ""
    #: Whether the OpenAPI definitions must be generated.
    makes_openapi: bool = False
    #: Build tags.
    tags: str = ""
    #: Modules whose home is gone and of which only kubectl imports anything: empty ones serve.
    gone: tuple[str, ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        """Variables for every call of Go; the module index would hide overlaid files."""
        found = {"GOTOOLCHAIN": self.toolchain} if self.toolchain else {}
        return found | ({"GODEBUG": "goindex=0"} if self.makes_openapi else {})


_OLD_GO = "go1.21.13"
_GONE = ("vbom.ml/util",)
_PROVIDERS = range(19, 31)  # minors that can be built without the SDKs of cloud providers


def recipe_of(version: str) -> Recipe:
    """Return how to build `version`."""
    minor = int(version.split(".")[1])
    return Recipe(
        toolchain=_OLD_GO if minor < 26 else "",
        makes_openapi=minor < 24,
        tags="providerless" if minor in _PROVIDERS else "",
        gone=_GONE if minor < 20 else (),
    )


def overlay(go: Go, recipe: Recipe, module_dir: Path, scratch: Path) -> Path:
    """Generate the OpenAPI definitions and return an overlay for `go build` that holds them."""
    sources = scratch / "gopath" / "src"
    go("mod", "vendor", "-e", cwd=module_dir)
    sources.parent.mkdir()
    shutil.move(module_dir / "vendor", sources)
    gopath = {"GO111MODULE": "off", "GOPATH": str(sources.parent), "GOFLAGS": ""}
    in_gopath = partial(go, cwd=sources, environment={**recipe.environment, **gopath})
    inputs = sorted(
        {
            str(path.parent.relative_to(sources))
            for path in (sources / "k8s.io").rglob("*.go")
            if MARK.search(path.read_text(errors="replace"))
        }
    )
    (sources / PACKAGE).mkdir(parents=True, exist_ok=True)
    header = scratch / "header.txt"
    header.touch()
    in_gopath(
        *("run", GENERATOR, "--input-dirs", ",".join(inputs), "--output-package", PACKAGE),
        *("--output-file-base", FILE.removesuffix(".go"), "--output-base", str(sources)),
        *("--go-header-file", str(header), "--report-filename", str(scratch / "report.txt")),
    )
    made = scratch / FILE
    shutil.move(sources / PACKAGE / FILE, made)
    shutil.rmtree(sources.parent)
    kubernetes = go("list", "-mod=mod", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes", cwd=module_dir)
    place = Path(kubernetes.strip()) / "pkg" / "generated" / "openapi" / FILE
    replaced = scratch / "overlay.json"
    replaced.write_text(json.dumps({"Replace": {str(place): str(made)}}))
    return replaced
