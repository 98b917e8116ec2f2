"""The HTML page of a what-if: its data, its refusal of markup, and how it looks at any width."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.sql.test_session import HOSTILE
from tests.support.pages import data_of
from tests.whatif.conftest import Import, Records, ask
from tracekit.answers.whatif.answers import Answers, Cause, Drawn, JobAnswer
from tracekit.answers.whatif.course import JobCourse
from tracekit.answers.whatif.cron_answers import CronAnswer
from tracekit.answers.whatif.cron_course import CronCourse
from tracekit.answers.whatif.lanes import FAILED, PodLane, Span
from tracekit.base.errors import TracekitError
from tracekit.base.kube.cronjob_views import CronJobView
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import job_from_raw
from tracekit.report.html.page import whatif_page
from tracekit.report.html.whatif import DRAWN_MAX, LISTED_MAX, whatif_data
from tracekit.versions.era import Era

webdriver = pytest.importorskip("selenium.webdriver")
from selenium.webdriver.support.wait import WebDriverWait  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")


@pytest.fixture(scope="session")
def written(imported: Import, records: Records, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page of a record of Jobs and with that of one of CronJobs."""
    folder = tmp_path_factory.mktemp("pages")
    for name, trace in (("jobs", imported("v1.25.4-twins")), ("crons", records.of("v1.28.15"))):
        options = ("--kubernetes-version", "v1.36.3", "--report", str(folder / f"{name}.html"))
        result = ask(trace, *options)
        assert result.exception is None, result.exception
    return folder


@pytest.mark.full
def test_each_jobs_two_courses_stand_above_one_another(written: Path) -> None:
    data = data_of((written / "jobs.html").read_text())
    target = data["targets"][0]
    verdicts = [thing["verdict"] for thing in target["drawn"]]
    assert verdicts == sorted(verdicts, key=["outcome", "pods", "timing"].index)
    card = next(t for t in target["drawn"] if t["key"] == "t-twin-failing-together/all-fail")
    assert [course["version"] for course in card["courses"]] == ["v1.25.4", "v1.36.3"]
    assert [len(course["lanes"]) for course in card["courses"]] == [11, 10]
    for course in card["courses"]:
        assert all(lane[3] == FAILED and lane[5] for lane in course["lanes"])
        assert course["end_ms"] <= card["span_ms"]
    twice = next(t for t in target["drawn"] if t["key"] == "t-twin-failing-together/twice")
    # The back-off of the newer rules is a time without a pod.
    assert max(b - a for a, b in twice["courses"][1]["waits"]) > 15_000
    assert target["causes"][0]["verdict"] == "pods"
    assert target["others"]


@pytest.mark.full
def test_a_cron_jobs_ticks_stand_above_one_another(written: Path) -> None:
    target = data_of((written / "crons.html").read_text())["targets"][0]
    card = next(t for t in target["drawn"] if t["kind"] == "CronJob")
    assert card["key"] == "shop/zoned"
    started = [sum(t[1] == "started" for t in course["ticks"]) for course in card["courses"]]
    assert started[0] > started[1] == 0
    assert target["cronjob_counts"]["outcome"] == 1
    job = next(t for t in target["drawn"] if t["kind"] == "Job")
    assert job["courses"][1]["text"] == "not started"


@pytest.mark.full
def test_a_report_is_not_written_over(written: Path, imported: Import) -> None:
    options = (
        "--kubernetes-version",
        "v1.36.3",
        "--report",
        str(written / "jobs.html"),
        "-o",
        "json",
    )
    result = ask(imported("v1.25.4-twins"), *options)
    assert isinstance(result.exception, TracekitError)
    assert "exists: choose another name" in str(result.exception)
    nowhere = (*options[:3], str(written / "no" / "folder.html"))
    told = str(ask(imported("v1.25.4-twins"), *nowhere).exception)
    assert "cannot be written" in told


# Whatever a trace calls things.


def hostile_answers(count: int) -> Answers:
    """Answers about Jobs and a CronJob in which every text is hostile."""
    raw = {"metadata": {"name": HOSTILE, "namespace": "ns", "uid": "u"}}
    job = job_from_raw(raw)
    lane = PodLane(HOSTILE, 0, (Span(2, 0, NS_PER_S),), FAILED, NS_PER_S, 1, HOSTILE)
    course = JobCourse("Failed", HOSTILE, 1, 0, 1, 2.0)
    one = JobAnswer(
        job, course, "outcome", baseline=course, target=replace(course, ended=None),
        because=(Cause("setting", HOSTILE),), why=HOSTILE, reason="x", drawn=Drawn(7, 20),
        lanes=((lane,), (lane,)),
    )  # fmt: skip
    cron_raw = {**raw, "spec": {"schedule": HOSTILE}}
    cron = CronAnswer(CronJobView.from_raw(cron_raw), CronCourse(), "outcome", target=CronCourse())
    others = [replace(one, verdict="unknowable", target=None) for _ in range(count)]
    eras = Era.resolve("v1.25.4"), Era.resolve("v1.36.3")
    return Answers(*eras, draws=20, jobs=[one] * count + others, cron_jobs=[cron])


def test_hostile_names_are_data_and_pages_stay_small() -> None:
    many = hostile_answers(3_000)
    page = whatif_page(whatif_data([many], f"/a/{HOSTILE}"))
    assert page.count("<script") == 2
    assert HOSTILE not in page
    target = data_of(page)["targets"][0]
    assert target["drawn"][1]["key"] == f"ns/{HOSTILE}".replace("\x1b", "\\u001b")
    assert len(target["drawn"]) == DRAWN_MAX
    assert len(target["others"]) == LISTED_MAX
    assert target["others_left"] == 3_000 - LISTED_MAX
    assert target["causes"][0]["sure"] == "in 7 of 20 draws"


FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
#: What reaches beyond the window's right edge, but for what scrolls or is cut on purpose.
STICKS_OUT = """
return [...document.querySelectorAll("body *")]
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
  .filter((one) => !one.closest(".scroll, .track")).map((one) => one.outerHTML.slice(0, 120));
"""
#: Neighbours in one line whose texts are printed over one another.
OVERPRINTED = """
const boxes = [];
for (const row of document.querySelectorAll(".axis, .told, .card h3, summary")) {
  const kids = [...row.children].map((kid) => kid.getBoundingClientRect()).filter((b) => b.width);
  kids.forEach((a, i) => kids.slice(i + 1).forEach((b) => {
    if (a.right > b.left + 1 && b.right > a.left + 1 && a.bottom > b.top + 1 && b.bottom > a.top + 1)
      boxes.push(row.textContent.slice(0, 80));
  }));
}
return boxes;
"""


@pytest.mark.full
@pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver")
def test_nothing_is_cut_or_overprinted_at_any_width(written: Path, tmp_path: Path) -> None:
    hostile = tmp_path / "hostile.html"
    hostile.write_text(whatif_page(whatif_data([hostile_answers(3)], "/a/b")))
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        for page in (written / "jobs.html", written / "crons.html", hostile):
            for width in (1400, 800, 420):
                size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
                browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
                browser.get(page.as_uri())
                WebDriverWait(browser, 60).until(
                    lambda b: b.execute_script("return document.documentElement.dataset.ready")
                )
                assert browser.execute_script(STICKS_OUT) == [], (page.name, width)
                assert browser.execute_script(OVERPRINTED) == [], (page.name, width)
            theme = "return getComputedStyle(document.body).backgroundColor"
            before = browser.execute_script(theme)
            browser.execute_script("document.getElementById('theme').click()")
            assert browser.execute_script(theme) != before
            assert len(browser.execute_script("return [...document.scripts]")) == 2
        assert [e for e in browser.get_log("browser") if e["level"] != "INFO"] == []
    finally:
        browser.quit()
