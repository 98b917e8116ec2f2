"""Building a control plane: the generated go.mod, and sentences for what a user can get wrong."""

import json
from pathlib import Path

import pytest

from tests.e2e import build
from tests.e2e.old_releases import overlay, recipe_of

PUBLISHED = {
    "Go": "1.16",
    "Godebug": [{"Key": "default", "Value": "go1.24"}],
    "Require": [
        {"Path": "k8s.io/api", "Version": "v0.0.0"},
        {"Path": "k8s.io/utils", "Version": "v0.0.0-20240711033017-18e509b52bc8"},
        {"Path": "example.com/other", "Version": "v0.0.0"},
    ],
    "Replace": [
        {"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
        {
            "Old": {"Path": "example.com/pinned"},
            "New": {"Path": "example.com/pinned", "Version": "v1.2.3"},
        },
    ],
}


@pytest.fixture
def go(monkeypatch: pytest.MonkeyPatch) -> None:
    def fake(*arguments: str, cwd: Path | None = None) -> str:
        assert cwd is None
        return json.dumps({"GoMod": "x"} if arguments[1] == "download" else PUBLISHED)

    monkeypatch.setattr(build, "run_go", fake)


@pytest.mark.usefixtures("go")
def test_only_unpublished_kubernetes_modules_are_replaced_by_their_tag() -> None:
    lines = build.generated_go_mod("v1.30.14").splitlines()
    assert "require k8s.io/kubernetes v1.30.14" in lines
    assert [line for line in lines if line.startswith("replace")] == [
        "replace k8s.io/api => k8s.io/api v0.30.14",
        "replace example.com/pinned => example.com/pinned v1.2.3",
    ]
    assert "go 1.17" in lines
    assert "godebug default=go1.24" in lines


def test_a_refusal_of_the_proxy_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = json.dumps({"Path": "k8s.io/kubernetes", "Error": "unknown revision v1.99.0"})
    monkeypatch.setattr(build, "run_go", lambda *_args, **_kwargs: refused)
    with pytest.raises(build.BuildError, match=r"refuses v1\.99\.0: unknown revision"):
        build.generated_go_mod("v1.99.0")


def test_no_go_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRACEKIT_E2E_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(build.BuildError, match="install Go"):
        build.ensure("v1.36.3")
    assert not build.is_complete(build.cache_dir("v1.36.3"))


def test_what_is_in_the_cache_is_not_built_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRACEKIT_E2E_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    folder = tmp_path / "v1.36.3"
    folder.mkdir()
    for program in build.PROGRAMS:
        (folder / program).touch()
    assert build.ensure("v1.36.3") == folder


def test_programs_of_nodes_are_built_only_when_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRACEKIT_E2E_CACHE", str(tmp_path))
    asked: list[str] = []

    def fake(*arguments: str, **_given: object) -> str:
        if arguments[0] == "build":
            made = Path(arguments[arguments.index("-o") + 1])
            made.parent.mkdir(exist_ok=True)
            made.touch()
            asked.append(arguments[-1].rpartition("/")[2])
        return ""

    monkeypatch.setattr(build, "run_go", fake)
    monkeypatch.setattr(build, "_require_go", lambda: None)
    folder = build.ensure("v1.36.3")
    assert asked == list(build.PROGRAMS)
    assert build.ensure("v1.36.3", (*build.PROGRAMS, *build.NODE_PROGRAMS)) == folder
    assert asked[2:] == ["kube-scheduler", "hollow"]
    assert build.is_complete(folder, (*build.PROGRAMS, *build.NODE_PROGRAMS))


@pytest.mark.parametrize("version", ["1.36.3", "v2.0.0", "v1.36", "../v1.36.3", ""])
def test_what_is_not_a_version_is_refused(version: str) -> None:
    with pytest.raises(build.BuildError, match="is not a Kubernetes version"):
        build.ensure(version)


def test_the_committed_go_mod_is_of_the_default_version() -> None:
    text = (build.TEMPLATE_DIR / "go.mod").read_text()
    assert f"k8s.io/kubernetes {build.DEFAULT_VERSION}\n" in text
    assert (build.TEMPLATE_DIR / "go.sum").is_file()


@pytest.mark.usefixtures("go")
def test_a_module_whose_home_is_gone_is_replaced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = {
        "Old": {"Path": "vbom.ml/util"},
        "New": {"Path": "vbom.ml/util", "Version": "v0.0.0-20160121211510-db5cfe13f5cc"},
    }
    monkeypatch.setitem(PUBLISHED, "Replace", [gone])
    replaced = {
        version: [
            line
            for line in build.generated_go_mod(version).splitlines()
            if line.startswith("replace vbom.ml/util ")
        ]
        for version in ("v1.19.16", "v1.30.14")
    }
    assert replaced == {
        "v1.19.16": ["replace vbom.ml/util => ./gone/vbom.ml/util"],
        "v1.30.14": ["replace vbom.ml/util => vbom.ml/util v0.0.0-20160121211510-db5cfe13f5cc"],
    }


@pytest.mark.parametrize(
    ("version", "toolchain", "makes_openapi", "tags"),
    [
        ("v1.16.15", "go1.21.13", True, ""),
        ("v1.23.17", "go1.21.13", True, "providerless"),
        ("v1.24.17", "go1.21.13", False, "providerless"),
        ("v1.26.13", "", False, "providerless"),
        ("v1.31.0", "", False, ""),
        ("v1.36.3", "", False, ""),
    ],
)
def test_old_releases_get_an_old_compiler_and_what_they_do_not_publish(
    version: str, toolchain: str, tags: str, *, makes_openapi: bool
) -> None:
    recipe = recipe_of(version)
    assert (recipe.toolchain, recipe.makes_openapi) == (toolchain, makes_openapi)
    assert recipe.tags == tags
    assert recipe.environment.get("GOTOOLCHAIN", "") == toolchain


def test_the_generator_is_told_every_package_that_asks_for_it(tmp_path: Path) -> None:
    module, calls = tmp_path / "module", []

    def go(*arguments: str, cwd: Path, environment: dict[str, str] | None = None) -> str:
        calls.append((arguments, environment or {}))
        if arguments[:2] == ("mod", "vendor"):
            marked = module / "vendor" / "k8s.io" / "api" / "batch" / "v1"
            marked.mkdir(parents=True)
            (marked / "doc.go").write_text("// +k8s:openapi-gen=true\npackage v1\n")
            (module / "vendor" / "k8s.io" / "utils").mkdir()
            (module / "vendor" / "k8s.io" / "utils" / "a.go").write_text("package utils\n")
        elif arguments[0] == "run":
            (cwd / "k8s.io/kubernetes/pkg/generated/openapi/zz_generated.openapi.go").write_text("")
        return "/modules/kubernetes\n" if arguments[0] == "list" else ""

    written = overlay(go, recipe_of("v1.20.15"), module, tmp_path)
    run, environment = next(call for call in calls if call[0][0] == "run")
    assert run[run.index("--input-dirs") + 1] == "k8s.io/api/batch/v1"
    assert (environment["GO111MODULE"], environment["GOTOOLCHAIN"]) == ("off", "go1.21.13")
    place = "/modules/kubernetes/pkg/generated/openapi/zz_generated.openapi.go"
    assert list(json.loads(written.read_text())["Replace"]) == [place]
