"""A release as files in `dist`, without network: `make release VERSION=1.2.3`.

Writes the version into `pyproject.toml` and the chart, and the changelog's section out of its
fragments; builds wheel and sdist twice and compares them byte for byte; then the chart, the bill of
materials (CycloneDX) of the locked packages, the lock file, and SHA256SUMS over all of it. The
time in the files is midnight of the changelog's date, so that whoever checks out the tag and asks
for the same version gets the same bytes. Nothing is committed, tagged or sent.
"""

from __future__ import annotations

import argparse
import filecmp
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from datetime import UTC, date, datetime
from pathlib import Path

PROJECT = Path("pyproject.toml")
CHANGELOG = Path("CHANGELOG.md")
CHART = Path("packaging/chart")
LOCK = Path("packaging/requirements.lock")
UNRELEASED = "## [Unreleased]\n\nNothing has been released yet. What the first release has:\n"
FIRST = "## What the first release has\n"
_VERSION = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")


class ReleaseError(Exception):
    """There is no release; the sentence says what to do."""


def main(words: list[str] | None = None) -> int:
    """Make the release of a checkout; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--date", type=date.fromisoformat, help="Of the changelog's new section.")
    asked = parser.parse_args(words)
    try:
        made = release(asked.root, asked.version, asked.date)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 2
    for path in made:
        print(path)
    return 0


def release(root: Path, version: str, day: date | None = None) -> list[Path]:
    """The files of the release, in `dist` of the checkout."""
    if not _VERSION.fullmatch(version):
        raise ReleaseError(f"{version!r} is no version: write it like 1.2.3 or 1.2.3rc1")
    if _run(root, "git", "status", "--porcelain").strip():
        raise ReleaseError("the checkout has changes: commit or stash them first")
    write_version(root, version)
    told = section_date(root, version)
    if told is None:
        told = day or datetime.now(UTC).date()
        write_section(root, version, told)
    epoch = int(datetime(told.year, told.month, told.day, tzinfo=UTC).timestamp())
    target = root / "dist"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    made = build_twice(root, target, epoch)
    made.append(pack_chart(root, target, version, epoch))
    made.append(bill_of_materials(root, target, version, epoch))
    made.append(Path(shutil.copy(root / LOCK, target / f"kube-tracekit-{version}.lock")))
    return [*made, checksums(target)]


def write_version(root: Path, version: str) -> None:
    """The version of `pyproject.toml`, which is the one that all else has; the chart's too."""
    _replace(root / PROJECT, r'(?m)^version = ".*"$', f'version = "{version}"')
    _replace(root / CHART / "Chart.yaml", r"(?m)^version: .*$", f"version: {version}")
    _replace(root / CHART / "Chart.yaml", r"(?m)^appVersion: .*$", f'appVersion: "{version}"')


def _replace(path: Path, pattern: str, text: str) -> None:
    new, count = re.subn(pattern, text, path.read_text(encoding="utf-8"))
    if count != 1:
        raise ReleaseError(f"{path} has {count} lines of a version, and must have one")
    path.write_text(new, encoding="utf-8")


def section_date(root: Path, version: str) -> date | None:
    """The date of a version's section of the changelog; None: there is none yet."""
    text = (root / CHANGELOG).read_text(encoding="utf-8")
    found = re.search(rf"(?m)^## \[{re.escape(version)}\] - (\d{{4}}-\d\d-\d\d)$", text)
    return None if found is None else date.fromisoformat(found[1])


def write_section(root: Path, version: str, day: date) -> None:
    """The changelog's section out of the fragments, which go."""
    path = root / CHANGELOG
    text = path.read_text(encoding="utf-8").replace(UNRELEASED, FIRST)
    path.write_text(text, encoding="utf-8")
    words = ("build", "--yes", "--version", version, "--date", day.isoformat())
    _run(root, sys.executable, "-m", "towncrier", *words)


def build_twice(root: Path, target: Path, epoch: int) -> list[Path]:
    """Wheel and sdist; a ReleaseError if a second build differs by a byte."""
    with tempfile.TemporaryDirectory() as folder:
        rounds = [Path(folder) / "one", Path(folder) / "two"]
        for place in rounds:
            words = ("-m", "build", "--no-isolation", "--outdir", str(place))
            _run(root, sys.executable, *words, SOURCE_DATE_EPOCH=str(epoch))
        first, second = (sorted(place.iterdir()) for place in rounds)
        for one, two in zip(first, second, strict=True):
            if one.name != two.name or not filecmp.cmp(one, two, shallow=False):
                raise ReleaseError(f"{one.name} is not the same when it is built again")
        return [Path(shutil.copy(path, target / path.name)) for path in first]


def pack_chart(root: Path, target: Path, version: str, epoch: int) -> Path:
    """The chart as `helm package` lays it out, with one time and no owner in it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted((root / CHART).rglob("*")):
            if path.is_file():
                member = tarfile.TarInfo(f"kube-tracekit/{path.relative_to(root / CHART)}")
                member.size, member.mtime, member.mode = path.stat().st_size, epoch, 0o644
                with path.open("rb") as content:
                    archive.addfile(member, content)
    made = target / f"kube-tracekit-chart-{version}.tgz"
    made.write_bytes(gzip.compress(packed.getvalue(), mtime=epoch))
    return made


def bill_of_materials(root: Path, target: Path, version: str, epoch: int) -> Path:
    """What the image and CI install, by name, version and hash (CycloneDX)."""
    made = target / f"kube-tracekit-{version}.cdx.json"
    words = ("-m", "cyclonedx_py", "requirements", "--output-reproducible", "--of", "JSON")
    pyproject = ("--pyproject", str(PROJECT), "-o", str(made), str(LOCK))
    _run(root, sys.executable, *words, *pyproject, SOURCE_DATE_EPOCH=str(epoch))
    return made


def checksums(target: Path) -> Path:
    """SHA256SUMS over all files of the folder, as `sha256sum -c` reads it."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(target.iterdir())
    ]
    made = target / "SHA256SUMS"
    made.write_text("".join(lines), encoding="utf-8")
    return made


def _run(root: Path, *words: str, **variables: str) -> str:
    done = subprocess.run(  # noqa: S603 - git, this interpreter's own tools
        words,
        cwd=root,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ReleaseError(f"{' '.join(words[:4])} failed:\n{done.stdout}{done.stderr}".rstrip())
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
