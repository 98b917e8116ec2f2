"""`make release`: one version, the same bytes again, checksums and a bill of materials."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import tarfile
import tomllib
from datetime import date
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import pytest
import yaml

from tests.support.traces import ROOT

#: What a release is made from; the other traces and the tests are not in it.
NEEDED = ("tracekit", "docs", "packaging", "traces/v1.36.3-all", "pyproject.toml", "README.md", "LICENSE",
          "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", ".gitignore")  # fmt: skip
DAY = date(2026, 11, 27)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / "packaging" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def git(root: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *who, *words], cwd=root, capture_output=True, text=True, check=True
    )
    return done.stdout


def checkout(root: Path) -> Path:
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *NEEDED],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    for name in files:
        if (ROOT / name).exists():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            # As in a clone: a link stays one.
            shutil.copy(ROOT / name, root / name, follow_symlinks=False)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "all")
    return root


@pytest.fixture(scope="module")
def released(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = checkout(tmp_path_factory.mktemp("release"))
    with pytest.MonkeyPatch.context() as patch:
        # Nothing answers there: whoever asks a network for something fails.
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            patch.setenv(name, "http://127.0.0.1:9")
        script.release(root, "9.8.7", DAY)
    return root


@pytest.mark.full
def test_all_of_it_has_the_one_version(released: Path) -> None:
    dist = released / "dist"
    assert sorted(path.name for path in dist.iterdir()) == [
        "SHA256SUMS",
        "kube-tracekit-9.8.7.cdx.json",
        "kube-tracekit-9.8.7.lock",
        "kube-tracekit-chart-9.8.7.tgz",
        "kube_tracekit-9.8.7-py3-none-any.whl",
        "kube_tracekit-9.8.7.tar.gz",
    ]
    with tarfile.open(dist / "kube-tracekit-chart-9.8.7.tgz") as chart:
        member = chart.extractfile("kube-tracekit/Chart.yaml")
        assert member is not None
        about = yaml.safe_load(member.read())
    assert (about["version"], about["appVersion"]) == ("9.8.7", "9.8.7")
    with ZipFile(dist / "kube_tracekit-9.8.7-py3-none-any.whl") as wheel:
        names = wheel.namelist()
        demo = wheel.read("tracekit/cli/demo_trace/watch.jsonl.zst")
    # The demo's trace is a link in the checkout, and leads nowhere from here.
    assert demo == (ROOT / "traces" / "v1.36.3-all" / "watch.jsonl.zst").read_bytes()
    with tarfile.open(dist / "kube_tracekit-9.8.7.tar.gz") as sources:
        members = sources.getmembers()
    assert all(member.isfile() for member in members)
    assert len({member.name for member in members}) == len(members)
    assert "tracekit/cli/main.py" in names
    assert not [name for name in names if name.startswith(("tests", "packaging", "traces"))]
    text = (released / "CHANGELOG.md").read_text()
    assert "## [9.8.7] - 2026-11-27" in text
    assert "[Unreleased]" not in text
    assert not list((released / "docs" / "changelog.d").glob("*.added.md"))


@pytest.mark.full
def test_checksums_and_bill_of_materials_are_of_what_is_there(released: Path) -> None:
    dist = released / "dist"
    sums = dict(line.split("  ")[::-1] for line in (dist / "SHA256SUMS").read_text().splitlines())
    assert len(sums) == 5
    for name, digest in sums.items():
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest
    bill = json.loads((dist / "kube-tracekit-9.8.7.cdx.json").read_text())
    assert bill["bomFormat"] == "CycloneDX"
    assert bill["metadata"]["component"]["name"] == "kube-tracekit"
    named = {part["name"]: part["version"] for part in bill["components"]}
    locked = dict(
        re.findall(r"(?m)^([\w.-]+)==([\w.]+)", (dist / "kube-tracekit-9.8.7.lock").read_text())
    )
    assert named.items() >= locked.items()


@pytest.mark.full
def test_who_builds_the_tag_again_gets_the_same_bytes(
    released: Path, script: ModuleType, tmp_path
) -> None:
    git(released, "add", "-A")
    git(released, "commit", "-qm", "release")
    again = tmp_path / "again"
    git(tmp_path, "clone", "-q", str(released), str(again))
    script.release(again, "9.8.7")
    assert git(again, "status", "--porcelain") == ""
    assert (again / "dist/SHA256SUMS").read_text() == (released / "dist/SHA256SUMS").read_text()


def test_what_cannot_be_released_is_said(script: ModuleType, tmp_path, capsys) -> None:
    assert script.main(["next", "--root", str(tmp_path)]) == 2
    assert "write it like 1.2.3" in capsys.readouterr().err
    git(tmp_path, "init", "-q")
    (tmp_path / "pyproject.toml").write_text("")
    assert script.main(["1.2.3", "--root", str(tmp_path)]) == 2
    assert "commit or stash" in capsys.readouterr().err


def test_a_release_after_another_asks_no_network(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    for number, name in enumerate((".venv/bin/python", ".venv/.release", "pyproject.toml")):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (number, number))
    words = ["make", "--no-print-directory", "-n", "release", "VERSION=1.2.3"]
    # As a user asks it, also where a make runs this test.
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))
    }
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert done.stdout == ".venv/bin/python packaging/release.py 1.2.3\n"


#### What is locked ####


def test_every_dependency_is_locked_by_hash() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked = (ROOT / "packaging" / "requirements.lock").read_text()
    for wanted in project["dependencies"]:
        name = re.split(r"[<>=!~;\[ ]", wanted)[0]
        assert re.search(rf"(?mi)^{re.escape(name)}==\S+ .*\\\n +--hash=sha256:", locked), name
    assert "://" not in locked


def test_the_chart_has_the_version_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chart = yaml.safe_load((ROOT / "packaging" / "chart" / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == project["version"]


def test_the_base_of_the_image_is_named_by_digest() -> None:
    text = (ROOT / "Containerfile").read_text()
    assert re.search(r"(?m)^ARG BASE=\S+@sha256:[0-9a-f]{64}$", text)
    assert re.findall(r"(?m)^FROM (\S+)", text) == ["${BASE}", "${BASE}"]
    assert re.search(r"(?m)^USER 65532:65532$", text)
