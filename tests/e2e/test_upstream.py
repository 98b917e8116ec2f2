"""Taking Go sources apart and comparing gates, on small sources of our own: no network."""

from pathlib import Path

import pytest

from tests.e2e import upstream
from tracekit.versions.gates import Gate
from tracekit.versions.version import KubeVersion

OLD = """package job

import "fmt"

const (
	// first is a comment.
	first = 1
	second = 2
)

var one = 1

type Controller struct {
	queue int
}

// syncJob has a comment that does not count.
func (jm *Controller) syncJob(key string) error {
	// neither does this one

	return fmt.Errorf("no") // nor this one
}

func gone() {}

func Generic[T any](
	a T,
) error {
	return nil
}
"""
NEW = (
    OLD.replace("// syncJob has a comment that does not count.\n", "")
    .replace("func gone() {}\n", "func came() {}\n")
    .replace("second = 2", "second = 3")
    .replace("\treturn nil\n", "\tpanic(a)\n")
)
GATES_GO = """package features

const (
	JobManagedBy featuregate.Feature = "JobManagedBy"
	TTL featuregate.Feature = "TTLAfterFinished"
)

var specs = map[featuregate.Feature]featuregate.VersionedSpecs{
	JobManagedBy: {
		{Version: version.MustParse("1.30"), Default: false, PreRelease: featuregate.Alpha},
		{Version: version.MustParse("1.32"), Default: true, PreRelease: featuregate.Beta},
		{Version: version.MustParse("1.35"), Default: true, PreRelease: featuregate.GA, LockToDefault: true},
	},
}

var old = map[featuregate.Feature]featuregate.FeatureSpec{
	TTL: {Default: true, PreRelease: featuregate.GA, LockToDefault: true}, // remove in 1.25
}
"""


def test_declarations_go_by_their_names_and_without_comments() -> None:
    found = upstream.declarations(OLD)
    assert list(found) == [
        "const (first, …)",
        "var one",
        "type Controller",
        "Controller.syncJob",
        "gone",
        "Generic",
    ]
    assert "comment" not in found["Controller.syncJob"]
    assert found["Controller.syncJob"].endswith("}")
    assert found["Generic"].count("\n") == 4


@pytest.fixture
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version, text in (("v1", OLD), ("v2", NEW)):
        for module, places in upstream.FOLLOWED.items():
            file = tmp_path / module / version / places[0] / "some.go"
            file.parent.mkdir(parents=True)
            file.write_text(text if module == "k8s.io/kubernetes" else "package x\n")
            file.with_name("some_test.go").write_text(f"package x\nvar v = {version!r}\n")
    monkeypatch.setattr(upstream, "source_of", lambda module, version: tmp_path / module / version)


@pytest.mark.usefixtures("releases")
def test_what_differs_is_told_and_comments_and_tests_do_not_count(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert upstream.main(["v1", "v2"]) == 1
    at = "pkg/controller/job/some.go"
    assert capsys.readouterr().out.splitlines() == [
        f"changed {at}:const (first, …)",
        f"removed {at}:gone",
        f"changed {at}:Generic",
        f"added   {at}:came",
    ]
    assert upstream.main(["v1", "v2", "--diff"]) == 1
    assert "    -\tsecond = 2" in capsys.readouterr().out
    assert upstream.main(["v1", "v1"]) == 0


@pytest.mark.parametrize(
    ("version", "state"),
    [
        ("1.31.0", (False, "alpha", False)),
        ("1.34.1", (True, "beta", False)),
        ("1.37.0", (True, "ga", True)),
    ],
)
def test_gates_are_read_as_a_release_has_them(version: str, state: upstream.GateState) -> None:
    found = upstream.gate_states(GATES_GO, KubeVersion.parse(version))
    assert found == {"JobManagedBy": state, "TTLAfterFinished": (True, "ga", True)}


def test_a_gate_that_contradicts_the_table_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in upstream.GATE_FILES.values():
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "pkg/features/kube_features.go").write_text(GATES_GO)
    monkeypatch.setattr(upstream, "source_of", lambda *_: tmp_path)
    told = list(upstream.gate_errors("v1.37.1"))
    assert not any(Gate.JobManagedBy.value in line for line in told)
    [line] = [line for line in told if Gate.TTLAfterFinished.value in line]
    assert line == (
        "v1.37.1: TTLAfterFinished is (True, 'ga', True) upstream and None in the table"
    )
