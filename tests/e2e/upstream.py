"""What changed upstream between two releases in the code that the ports follow.

    python -m tests.e2e.upstream v1.36.3 v1.37.1          # functions and declarations that differ
    python -m tests.e2e.upstream v1.36.3 v1.37.1 --diff   # with the lines
    python -m tests.e2e.upstream --gates v1.30.14 v1.37.1 # tracekit's gate table against the source

Sources come through the Go module proxy, as for building a control plane. A file of gofmt'ed Go is
taken apart by its top-level declarations: each begins in the first column and ends with the first
line that closes it there. Comments, imports and tests do not count. Exit status: 0 when nothing
differs, 1 when something does, 2 when a release cannot be had.
"""

import argparse
import difflib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.build import BuildError, run_go
from tracekit.versions.gates import GATES, Gate
from tracekit.versions.version import KubeVersion

#: Module → the files and folders of it that the ports follow.
FOLLOWED: Mapping[str, Sequence[str]] = {
    "k8s.io/kubernetes": (
        "pkg/controller/job",
        "pkg/controller/cronjob",
        "pkg/controller/ttlafterfinished",
        "pkg/controller/controller_utils.go",
        "pkg/controller/controller_ref_manager.go",
        "pkg/registry/batch",
        "pkg/apis/batch/v1/defaults.go",
        "pkg/apis/batch/validation",
    ),
    "k8s.io/client-go": ("util/workqueue", "tools/record"),
}
GATE_FILES: Mapping[str, str] = {
    "k8s.io/kubernetes": "pkg/features",
    "k8s.io/client-go": "features",
}
_GENERATED = re.compile(r"zz_generated|_test\.go$|/testing/")
_DECLARATION = re.compile(r"^(func|type|var|const) ")
_FUNCTION = re.compile(r"^func (?:\(\w+ \*?(?P<receiver>\w+)(?:\[.*?\])?\) )?(?P<name>\w+)")
_NAMED = re.compile(r"^(?P<kind>type|var|const) (?P<name>\w+)")
_COMMENT = re.compile(r"^\s*//.*$|\s+//.*$")
_VERSIONED = re.compile(r"^\t(?:\w+\.)?(\w+): \{\n((?:\t\t\{.*\n)+)\t\},?", re.MULTILINE)
_SPEC = re.compile(
    r'MustParse\("([\d.]+)"\), Default: (\w+), PreRelease: (?:\w+\.)?(\w*)(?:, LockToDefault: (\w+))?'
)
_PLAIN = re.compile(
    r"^\t(?:\w+\.)?(\w+):\s+\{Default: (\w+), PreRelease: (?:\w+\.)?(\w*)(?:, LockToDefault: (\w+))?",
    re.MULTILINE,
)
_CONSTANT = re.compile(r'^\s*(\w+)\s+(?:[\w.]+\s*)?= "(\w+)"', re.MULTILINE)

#: default, stage, locked; as upstream has a gate in one release.
GateState = tuple[bool, str, bool]


@dataclass(frozen=True, slots=True)
class Difference:
    """One declaration that differs between two releases."""

    file: str
    name: str
    how: str  # "changed", "added" or "removed"
    lines: tuple[str, ...]


def source_of(module: str, version: str) -> Path:
    """The folder with a module's source at a Kubernetes release, fetched when it is not there."""
    tag = version if module == "k8s.io/kubernetes" else re.sub(r"^v1\.", "v0.", version)
    download = json.loads(run_go("mod", "download", "-json", f"{module}@{tag}"))
    if "Error" in download:
        raise BuildError(f"The Go module proxy refuses {module} {tag}: {download['Error']}.")
    return Path(download["Dir"])


def declarations(text: str) -> dict[str, str]:
    """The top-level declarations of a file by name, without comments.

    Those in brackets (`const (…)`) go under their keyword and the first name in them.
    """
    found: dict[str, str] = {}
    current: list[str] = []
    for raw in text.splitlines():
        line = _COMMENT.sub("", raw).rstrip()
        if not line or (not current and not _DECLARATION.match(line)):
            continue
        current.append(line)
        single = len(current) == 1 and not line.endswith(("{", "("))
        if single or line in ("}", ")", "})"):
            body = "\n".join(current)
            found[_name_of(current)] = body
            current = []
    return found


def _name_of(lines: Sequence[str]) -> str:
    function = _FUNCTION.match(lines[0])
    if function is not None:
        return ".".join(filter(None, (function["receiver"], function["name"])))
    named = _NAMED.match(lines[0])
    if named is not None:
        return f"{named['kind']} {named['name']}"
    first = lines[1].split()[0] if len(lines) > 1 else ""
    return f"{lines[0].split()[0]} ({first}, …)"


def differences(old: str, new: str) -> Iterator[Difference]:
    """Every followed declaration that differs between two releases, file by file."""
    for module, places in FOLLOWED.items():
        before, after = source_of(module, old), source_of(module, new)
        files = sorted({*_go_files(before, places), *_go_files(after, places)})
        for file in files:
            left, right = _declared(before / file), _declared(after / file)
            for name in [*left, *(name for name in right if name not in left)]:
                if left.get(name) != right.get(name):
                    yield _difference(file, name, left.get(name), right.get(name))


def _go_files(root: Path, places: Sequence[str]) -> Iterator[str]:
    for place in places:
        at = root / place
        for path in [at] if at.is_file() else sorted(at.rglob("*.go")):
            file = path.relative_to(root).as_posix()
            if not _GENERATED.search(file):
                yield file


def _declared(path: Path) -> dict[str, str]:
    return declarations(path.read_text()) if path.is_file() else {}


def _difference(file: str, name: str, old: str | None, new: str | None) -> Difference:
    how = "added" if old is None else "removed" if new is None else "changed"
    left, right = (old or "").splitlines(), (new or "").splitlines()
    lines = tuple(difflib.unified_diff(left, right, lineterm="", n=2))[2:]
    return Difference(file, name, how, lines)


def gate_states(text: str, version: KubeVersion) -> dict[str, GateState]:
    """Every gate of kube_features.go as it is in a release, by its name on the command line."""
    branch = (version.major, version.minor)
    names = dict(_CONSTANT.findall(text))
    found: dict[str, GateState] = {}
    for name, default, stage, locked in _PLAIN.findall(text):
        found[names.get(name, name)] = _state(default, stage, locked)
    for name, specs in _VERSIONED.findall(text):
        for since, default, stage, locked in _SPEC.findall(specs):
            if tuple(map(int, since.split(".")))[:2] <= branch:
                found[names.get(name, name)] = _state(default, stage, locked)
    return found


def _state(default: str, stage: str, locked: str) -> GateState:
    return (default == "true", stage.lower() or "ga", locked == "true")


def gate_errors(version: str) -> Iterator[str]:
    """One sentence for each gate of tracekit's table that the source of a release contradicts."""
    at = KubeVersion.parse(version)
    upstream: dict[str, GateState] = {}
    for module, folder in GATE_FILES.items():
        for path in sorted((source_of(module, version) / folder).glob("*.go")):
            if not _GENERATED.search(path.name):
                upstream |= gate_states(path.read_text(), at)
    for gate in Gate:
        history, spec = GATES[gate], GATES[gate].at(at)
        ours = None
        if spec is not None and not history.is_removed(at):
            ours = (spec.default, spec.stage.value.lower(), spec.locked)
        theirs = upstream.get(gate.value)
        if ours != theirs:
            yield f"{version}: {gate.value} is {theirs} upstream and {ours} in the table"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what differs; 0 where nothing does, 1 where something does, 2 where it cannot be had."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("versions", nargs="+", metavar="VERSION")
    parser.add_argument("--gates", action="store_true", help="check the gate table instead")
    parser.add_argument("--diff", action="store_true", help="show the lines that differ")
    options = parser.parse_args(arguments)
    if not options.gates and len(options.versions) != 2:
        parser.error("name two releases, or --gates and any number of them")
    try:
        if options.gates:
            lines = [line for version in options.versions for line in gate_errors(version)]
        else:
            lines = [
                line
                for found in differences(*options.versions)
                for line in (
                    f"{found.how:8}{found.file}:{found.name}",
                    *(f"    {line}" for line in found.lines if options.diff),
                )
            ]
    except BuildError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
