"""Versions: parsing, ordering, boundaries."""

import pytest

from tracekit.base.errors import UnsupportedVersionError
from tracekit.versions.version import Boundary, KubeVersion


@pytest.mark.parametrize(
    ("text", "triple", "suffix"),
    [
        ("v1.29.6-gke.1254000", (1, 29, 6), "-gke.1254000"),
        ("v1.27.4+k3s1", (1, 27, 4), "+k3s1"),
        ("v1.24.10-eks-48e63af", (1, 24, 10), "-eks-48e63af"),
        ("1.30.0", (1, 30, 0), ""),
        ("v1.31.0-alpha.2", (1, 31, 0), "-alpha.2"),
        ("v1.31.0-rc.1.14+0123abc", (1, 31, 0), "-rc.1.14+0123abc"),
        ("v1.26.3+rke2r1", (1, 26, 3), "+rke2r1"),
        ("  v1.25.4\n", (1, 25, 4), ""),
        ("1.20", (1, 20, 0), ""),
        ("v1.19+", (1, 19, 0), ""),  # what /version calls minor on some distributions
    ],
)
def test_a_version_of_any_distribution_is_read(text, triple, suffix):
    version = KubeVersion.parse(text)
    assert version.triple == triple
    assert version.suffix == suffix
    assert version.text == text.strip()


@pytest.mark.parametrize(
    "text",
    ["", "v1", "latest", "1.x", "v1.29.6.1", "v1.029.6", "1.2\uff19.3", "v-1.2.3", "1.29.6 -gke"],
)
def test_a_text_that_is_no_version_is_refused_with_an_example(text):
    with pytest.raises(UnsupportedVersionError, match="write it like"):
        KubeVersion.parse(text)


def test_versions_order_as_numbers_and_not_as_text():
    texts = ["v1.9.11", "v1.11.10", "v1.29.6", "v1.29.10", "v1.30.0"]
    assert [str(v) for v in sorted(map(KubeVersion.parse, reversed(texts)))] == texts


def test_a_suffix_is_no_part_of_equality():
    assert KubeVersion.parse("v1.29.6-gke.1") == KubeVersion.parse("1.29.6")
    assert hash(KubeVersion.parse("v1.29.6-gke.1")) == hash(KubeVersion.parse("1.29.6"))


def test_a_boundary_with_backports_holds_from_the_patch_of_each_branch_on():
    boundary = Boundary("1.29", (("1.26", 11), ("1.28", 4)))
    held = [
        t
        for t in ("1.25.16", "1.26.10", "1.26.11", "1.27.16", "1.28.3", "1.28.4", "1.29.0")
        if boundary.holds(KubeVersion.parse(t))
    ]
    assert held == ["1.26.11", "1.28.4", "1.29.0"]


def test_a_withdrawn_behavior_stops_at_the_minor_that_lacks_it():
    boundary = Boundary("1.27", (("1.23", 16),), gone="1.28")
    held = [
        t
        for t in ("1.23.15", "1.23.16", "1.24.17", "1.27.0", "1.27.16", "1.28.0", "1.36.0")
        if boundary.holds(KubeVersion.parse(t))
    ]
    assert held == ["1.23.16", "1.27.0", "1.27.16"]


def test_edges_name_each_release_where_a_boundary_turns():
    boundary = Boundary("1.27", (("1.23", 16),), gone="1.28")
    assert boundary.edges() == (("1.23.16", True), ("1.27.0", True), ("1.28.0", False))
    assert boundary.describe() == "1.27, 1.23.16+ of 1.23"
