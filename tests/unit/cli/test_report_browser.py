"""The report in a real browser: no script error, keyboard, search, zoom, both themes, 10,000 pods."""

from __future__ import annotations

import base64
import re
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.sql.conftest import session_of, trace_path  # noqa: F401 - fixtures
from tests.sql.test_session import HOSTILE
from tracekit.base.time_input import ALWAYS
from tracekit.report.html.data import PHASES, report_data
from tracekit.report.html.page import report_page
from tracekit.report.serving import answers as answers_module
from tracekit.report.serving.answers import Answers
from tracekit.report.serving.server import ReportServer
from tracekit.sql.session import Session
from tracekit.versions.overrides import AskedRules

webdriver = pytest.importorskip("selenium.webdriver")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.wait import WebDriverWait  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver")

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--window-size=1300,1200",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def open_page(browser: Any, data: dict[str, Any], folder: Path) -> None:
    path = folder / "report.html"
    path.write_text(report_page(data))
    browser.get(path.as_uri())
    ready(browser)


def ready(browser: Any) -> None:
    until(browser, lambda: browser.execute_script("return document.documentElement.dataset.ready"))


def until(browser: Any, condition: Callable[[], Any]) -> None:
    """Wait for what the page does in a task of its own: a load, a change of the hash."""
    WebDriverWait(browser, 60).until(lambda _: condition())


def errors(browser: Any) -> list[Any]:
    return [
        entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")
    ]


def painted(browser: Any) -> str:
    """What the timeline looks like, after the next frame."""
    return browser.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => "
        "done(document.getElementById('gantt').toDataURL())))"
    )


def keys(browser: Any, *pressed: str) -> None:
    frame = browser.find_element(By.ID, "frame")
    for key in pressed:
        frame.send_keys(key)


def count(browser: Any) -> str:
    return browser.find_element(By.ID, "count").text


def choose_job(browser: Any) -> None:
    """Open the first Job that is not folded."""
    keys(browser, Keys.HOME)
    details = browser.find_element(By.ID, "details")
    for _ in range(30):
        keys(browser, Keys.ARROW_DOWN, Keys.ENTER)
        if details.is_displayed() and "What happened" in details.text:
            return
    raise AssertionError("no row opened a Job")


@pytest.fixture(scope="module")
def real(session_of):  # noqa: F811
    return report_data(session_of("v1.36.3-churn7"))


@pytest.mark.full
def test_keyboard_zoom_details_and_themes(browser, real, tmp_path: Path) -> None:
    open_page(browser, real, tmp_path)
    assert count(browser) == "250 of 250 Jobs"
    whole = painted(browser)
    keys(browser, "+")
    zoomed = painted(browser)
    assert zoomed != whole
    keys(browser, "0")
    assert painted(browser) == whole
    for closer, wider in (("w", "s"), ("d", "a")):
        keys(browser, closer)
        assert painted(browser) != whole or closer == "d"
        keys(browser, wider)
    keys(browser, "0")
    assert painted(browser) == whole
    choose_job(browser)
    details = browser.find_element(By.ID, "details")
    assert details.is_displayed()
    assert "What happened" in details.text
    assert "job-controller" in details.text
    assert "Revisions" in details.text
    assert browser.execute_script("return location.hash").startswith("#job=")
    keys(browser, "f")
    assert painted(browser) != whole
    keys(browser, Keys.ESCAPE, "0")
    assert not details.is_displayed()
    theme = browser.execute_script("return document.documentElement.dataset.theme")
    keys(browser, "t")
    assert browser.execute_script("return document.documentElement.dataset.theme") != theme
    assert painted(browser) != whole
    assert errors(browser) == []


@pytest.mark.full
def test_search_and_filters(browser, real, tmp_path: Path) -> None:
    open_page(browser, real, tmp_path)
    search = browser.find_element(By.ID, "search")
    keys(browser, "/")
    assert browser.switch_to.active_element == search
    search.send_keys("BackoffLimitExceeded")
    browser.execute_async_script("setTimeout(arguments[0], 250)")
    failed = sum(1 for job in real["jobs"] if job["reason"] == "BackoffLimitExceeded")
    assert count(browser) == f"{failed} of 250 Jobs"
    search.clear()
    search.send_keys("nothing has this name")
    browser.execute_async_script("setTimeout(arguments[0], 250)")
    assert count(browser) == "0 of 250 Jobs"
    assert errors(browser) == []


@pytest.mark.full
def test_nothing_is_asked_of_the_network(browser, real, tmp_path: Path) -> None:
    open_page(browser, real, tmp_path)
    asked = browser.execute_script(
        "return performance.getEntriesByType('resource').map(e => e.name)"
    )
    assert [name for name in asked if not name.startswith("data:")] == []


def synthetic(jobs: int, pods: int, name: str = "job") -> dict[str, Any]:
    running = PHASES.index("Running")
    finding = {
        "id": "TK401", "severity": "warning", "title": name, "text": f"Job {name}: failed",
        "do": name, "thread": 1, "url": "https://example.com/1", "from": 0.0, "until": 9e4,
        "cases": [["Job", "ns", f"{name}-0", "uid-0", name, 0.0, 9e4]], "left": 0,
        "commands": [], "actors": [],
    }  # fmt: skip
    cron = {
        "namespace": "ns", "name": name, "schedule": "* * * * *",
        "ticks": [[0.0, "started", "Allow", f"{name}-0", 10.0, name],
                  [6e4, "missed", "no-leader", None, None, name]],
    }  # fmt: skip
    return {
        "schema_version": 1, "title": name, "trace": name, "version": None, "rules": None,
        "start_ns": str(10**18), "span_ms": 1e6, "phases": PHASES, "findings": [finding], "pods_recorded": True,
        "crons": [cron], "pauses": [[2e4, 4e4, name]], "leaders": [], "edits": [[5.0, "job-create", name, name]],
        "warnings": [[5.0, name, name, name]], "pod_diffs": {"pod-0-0": [[1.0, 2, [[name, 1, 2]]]]},
        "gaps": [["pods", 1000, 5000, name]], "running": [[0, 0], [10, 3]], "judged": {},
        "problems": [name], "divergences": [],
        "happenings": [[5.0, "Job", "ns", f"{name}-0", name, name, True, f"{name}-0", ""]],
        "writes": [[5.0, "Job", "ns", f"{name}-0", 1, "update", name, name, [[name, "1", "2"]], 0, None, ""]],
        "jobs": [
            {
                "trace": "t", "namespace": "ns", "job": f"{name}-{j}", "job_uid": f"uid-{j}",
                "cronjob": name if j == 0 else None,
                "outcome": "Failed" if j % 9 == 0 else "Complete", "reason": name, "message": name,
                "created": j * 900.0, "started": j * 900.0, "finished": j * 900.0 + 9e4,
                "gone": None, "queue_s": 1.0, "duration_s": 90.0, "backoff_s": 0, "retries": 0,
                "pod_count": pods, "pods_failed": 0, "restarts": 0, "succeeded": pods, "failed": 0,
                "parallelism": 1, "completions": 1, "backoff_limit": 6, "image": name,
                "pods": [
                    [f"pod-{j}-{p}", f"{name}-{j}-{p}", p, 1, "n", "Succeeded", 0, name,
                     "container", 0, 1.0, 2.0,
                     [[running, j * 900.0 + p, j * 900.0 + 9e4 - p]]]
                    for p in range(pods)
                ],
                "actions": [[j * 900.0, "pod-create", name, name, 1]],
                "history": [[j * 900.0, 1, [name], name, [[name, name, {"a": name}]]]] * 2,
                "events": [[1.0, "Normal", name, name, 1]],
                "logs": [[1.0, name, name, 0, 1, "", name]],
                "verdicts": [[j * 900.0, "pod-create", "extra", name, name, [[name, name, name]]]]
                if j % 9 == 0
                else [],
                "account": {"steps": [[j * 900.0, 1, name, name, [name], "extra"]],
                            "closing": name},
            }
            for j in range(jobs)
        ],
    }  # fmt: skip


def test_ten_thousand_pods_open_and_scroll(browser, tmp_path: Path) -> None:
    open_page(browser, synthetic(1000, 10), tmp_path)
    browser.find_element(By.ID, "open-all").click()
    browser.find_element(By.ID, "fold").click()
    assert browser.execute_script("return document.getElementById('spacer').style.height") == (
        f"{(1000 + 10_000 + 4) * 20}px"
    )
    top = painted(browser)
    keys(browser, Keys.END)
    assert painted(browser) != top
    assert errors(browser) == []


def test_hostile_names_run_nothing(browser, tmp_path: Path) -> None:
    name = HOSTILE + "<img src=x onerror=alert(3)></script><script>document.title='owned'</script>"
    open_page(browser, synthetic(3, 2, name), tmp_path)
    choose_job(browser)
    assert browser.find_element(By.ID, "details").is_displayed()
    assert browser.title != "owned"
    assert browser.find_elements(By.CSS_SELECTOR, "section img, section script") == []
    assert errors(browser) == []


@pytest.mark.parametrize("uid", ["constructor", "__proto__"])
def test_a_uid_is_no_name_of_the_scripts_own(browser, uid: str, tmp_path: Path) -> None:
    data = synthetic(1, 2)
    data["jobs"][0]["pods"][0][0] = uid
    open_page(browser, data, tmp_path)
    choose_job(browser)
    assert "Pods (2)" in browser.find_element(By.ID, "details").text
    assert errors(browser) == []


def test_a_link_to_no_finding_leads_nowhere(browser, tmp_path: Path) -> None:
    open_page(browser, synthetic(1, 2), tmp_path)
    for asked in ("__proto__", "length", "at,map", "-1", "0x0", "99999"):
        browser.get("about:blank")
        browser.get(f"{(tmp_path / 'report.html').as_uri()}#finding={asked}")
        ready(browser)
    assert errors(browser) == []


@pytest.fixture(scope="module")
def troubles(session_of):  # noqa: F811
    return report_data(session_of("v1.36.3-troubles"))


def test_the_culprit_comes_first_and_leads_to_the_job(browser, troubles, tmp_path: Path) -> None:
    open_page(browser, troubles, tmp_path)
    first = browser.find_element(By.CSS_SELECTOR, ".finding")
    # The cause, open and with its numbers; what followed from it beneath.
    assert first.get_attribute("data-id") == "TK208"
    assert "nobody led for 1 min 25 s: 1 tick missed" in first.text
    assert "What to do:" in first.text
    beneath = browser.find_elements(By.CSS_SELECTOR, ".finding.follows")
    assert [box.get_attribute("data-id") for box in beneath[:3]] == ["TK301", "TK307", "TK424"]
    beneath[0].find_element(By.TAG_NAME, "summary").click()
    assert "no controller manager led for 1 min 25 s" in beneath[0].text
    assert "kubernetes/kubernetes#101148" in beneath[0].text
    top = browser.execute_script(
        "return ['findings', 'tiles', 'timeline'].map(id => "
        "document.getElementById(id).getBoundingClientRect().top)"
    )
    assert top == sorted(top)
    browser.find_element(By.CSS_SELECTOR, "#more .more").click()
    row = next(
        box
        for box in browser.find_elements(By.CSS_SELECTOR, ".finding")
        if box.get_attribute("data-id") == "TK424"
    )
    row.find_element(By.TAG_NAME, "summary").click()
    row.find_element(By.TAG_NAME, "a").click()
    details = browser.find_element(By.ID, "details")
    until(browser, lambda: "t-troubles/overrun" in details.text)
    assert "TK424" in details.text
    assert browser.find_elements(By.CSS_SELECTOR, ".account > li.pointed")
    assert errors(browser) == []


@pytest.mark.full
def test_a_link_opens_the_job_at_its_time(browser, troubles, tmp_path: Path) -> None:
    open_page(browser, troubles, tmp_path)
    browser.get(f"{(tmp_path / 'report.html').as_uri()}#job=t-troubles%2Foom&t=9000")
    browser.refresh()
    ready(browser)
    details = browser.find_element(By.ID, "details")
    assert details.text.startswith("Close\nt-troubles/oom") or "t-troubles/oom" in details.text
    diffs = details.find_elements(By.CSS_SELECTOR, ".account details.revision")
    assert diffs
    command = details.find_element(By.CSS_SELECTOR, ".command code").text
    assert command.startswith("tracekit explain ")
    assert command.endswith(" t-troubles/oom")
    assert errors(browser) == []


def test_a_finding_narrows_the_timeline(browser, troubles, tmp_path: Path) -> None:
    open_page(browser, troubles, tmp_path)
    whole = painted(browser)
    place = next(i for i, f in enumerate(troubles["findings"]) if f["id"] == "TK402")
    browser.execute_script(f"location.hash = 'finding={place}'")
    until(browser, lambda: count(browser) == "1 of 48 Jobs")
    assert painted(browser) != whole
    browser.find_element(By.ID, "only").click()
    assert count(browser) == "48 of 48 Jobs"


@pytest.mark.full
def test_groups_and_orders_change_the_rows(browser, troubles, tmp_path: Path) -> None:
    open_page(browser, troubles, tmp_path)
    seen = {painted(browser)}
    for box, values in (
        ("group", ("namespace", "cronjob")),
        ("sort", ("created", "longest")),
    ):
        for value in values:
            browser.execute_script(
                "const box = document.getElementById(arguments[0]); box.value = arguments[1]; "
                "box.dispatchEvent(new Event('change'))",
                box,
                value,
            )
            seen.add(painted(browser))
    assert len(seen) == 5
    assert errors(browser) == []


@pytest.mark.full
def test_a_range_is_measured(browser, troubles, tmp_path: Path) -> None:
    open_page(browser, troubles, tmp_path)
    choose_job(browser)
    keys(browser, "m")
    told = browser.find_element(By.ID, "range").text
    assert "Job" in told
    assert "pods created" in told or "pod created" in told
    assert "tracekit diagnose" in told
    keys(browser, Keys.ESCAPE)
    assert not browser.find_element(By.ID, "range").is_displayed()


@pytest.mark.full
def test_the_brush_chooses_a_time(browser, troubles, tmp_path: Path) -> None:
    open_page(browser, troubles, tmp_path)
    whole = painted(browser)
    box = browser.find_element(By.ID, "minimap")
    from selenium.webdriver.common.action_chains import ActionChains  # noqa: PLC0415

    ActionChains(browser).move_to_element_with_offset(box, -200, 0).click_and_hold().move_by_offset(
        150, 0
    ).release().perform()
    assert painted(browser) != whole


@pytest.mark.full
def test_local_time_stands_beside_utc(browser, troubles, tmp_path: Path) -> None:
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Kolkata"})
    try:
        open_page(browser, troubles, tmp_path)
        since = browser.find_element(By.CSS_SELECTOR, ".finding time")
        utc, title = since.text, since.get_attribute("title")
        assert "UTC" in title
        assert "local" in title
        keys(browser, "u")
        assert browser.find_element(By.CSS_SELECTOR, ".finding time").text != utc
        assert browser.find_element(By.ID, "zone").text == "local time"
    finally:
        browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


LONG = "a-very-long-name-of-a-job-in-a-namespace-that-somebody-has-named-at-length-" * 2


@pytest.mark.parametrize("medium", ["light", "dark", "print"])
@pytest.mark.parametrize("width", [1400, 820, 420])
@pytest.mark.parametrize("what", ["troubles", "long"])
def test_nothing_is_broken_at_any_width(
    browser, troubles, tmp_path: Path, what: str, width: int, medium: str
) -> None:
    size = {"width": width, "height": 1200, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    dark = medium == "dark"
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    media = {"media": "print" if medium == "print" else "", "features": [scheme]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    try:
        open_page(browser, troubles if what == "troubles" else synthetic(20, 3, LONG), tmp_path)
        choose_job(browser)
        if medium == "print":
            browser.execute_script("dispatchEvent(new Event('beforeprint'))")
        theme = browser.execute_script("return document.documentElement.dataset.theme")
        assert theme == ("dark" if dark else "light")
        # Nothing is wider than the window, and no two texts lie on each other.
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert browser.execute_script(OVERLAPS) == []
        assert browser.execute_script(UNREADABLE) == []
        assert browser.execute_script(UNSEEN) == []
        if width < 600:
            assert browser.execute_script(CUT) == []
        assert errors(browser) == []
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


#: Tables and advice of which a part is out of sight.
CUT = """
return [...document.querySelectorAll(".scroll, .do")]
  .filter(e => e.offsetParent && e.scrollWidth > e.clientWidth)
  .map(e => e.textContent.slice(0, 40));
"""
#: Pairs of neighbouring labels whose boxes lie on each other.
OVERLAPS = """
const boxes = [...document.querySelectorAll(
  "h1, #subtitle, .tools button, .finding summary > span, .tile span, .tile b, #chips button, "
  + "#filters > *, #keys > span, th, dt, dd")].filter(e => e.offsetParent).map(
  e => [e, e.getBoundingClientRect()]).filter(([, r]) => r.width && r.height);
const found = [];
for (let i = 0; i < boxes.length; i += 1) for (let j = i + 1; j < Math.min(boxes.length, i + 12); j += 1) {
  const [a, p] = boxes[i], [b, q] = boxes[j];
  if (a.contains(b) || b.contains(a)) continue;
  if (a.closest(".scroll") !== b.closest(".scroll")) continue;  // one of them is scrolled away
  const x = Math.min(p.right, q.right) - Math.max(p.left, q.left);
  const y = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
  if (x > 2 && y > 2) found.push(`${a.textContent.slice(0, 30)} / ${b.textContent.slice(0, 30)}`);
}
return found;
"""
#: Texts with less than the 4.5 : 1 to what lies behind them that WCAG 2 asks for at level AA.
UNREADABLE = """
const parts = (text) => text.match(/[\\d.]+/g).map(Number);
const light = (text) => { const [r, g, b] = parts(text).map(
  v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
  if ((parts(c)[3] ?? 1) > 0) return light(c); } return 1; };
return [...document.querySelectorAll("body *")]
  .filter(e => e.offsetParent && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()))
  .map(e => [e, light(getComputedStyle(e).color), behind(e)])
  .filter(([, l, back]) => (Math.max(l, back) + 0.05) / (Math.min(l, back) + 0.05) < 4.5)
  .map(([e]) => `${e.tagName} ${e.className} ${e.textContent.slice(0, 30)}`);
"""
#: Colours of what is drawn with less than 3 : 1 to the panel.
UNSEEN = """
const style = getComputedStyle(document.documentElement);
const light = (text) => { const v = text.trim().slice(1).match(/../g).map(h => parseInt(h, 16) / 255).map(
  v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
const panel = light(style.getPropertyValue("--panel"));
return ["--p0", "--p1", "--p2", "--p3", "--p4", "--p5", "--p6", "--p7", "--warn", "--bad", "--accent"]
  .filter(name => { const l = light(style.getPropertyValue(name));
    return (Math.max(l, panel) + 0.05) / (Math.min(l, panel) + 0.05) < 3; });
"""


@pytest.fixture
def screen(browser):
    """Gives the window a size."""

    def sized(width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    yield sized
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def top_of(browser: Any, name: str) -> float:
    script = "return document.getElementById(arguments[0]).getBoundingClientRect().top"
    return browser.execute_script(script, name)


@pytest.mark.full
def test_the_timeline_is_on_the_first_screen_and_troubled_jobs_come_first(
    browser, troubles, screen, tmp_path: Path
) -> None:
    screen(1400, 900)
    open_page(browser, troubles, tmp_path)
    assert top_of(browser, "frame") < 540
    assert top_of(browser, "curves") < 470
    assert top_of(browser, "keys") > top_of(browser, "frame")
    assert browser.find_element(By.ID, "sort").get_attribute("value") == "trouble"
    assert "1970" not in browser.find_element(By.TAG_NAME, "body").text


#: Keeps what is written on canvases, by canvas.
RECORDED = """
window.written = {};
const fillText = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
  (window.written[this.canvas.id] ||= []).push([text, x, y]);
  return fillText.apply(this, arguments);
};
"""


@pytest.fixture
def written(browser):
    """What is written on the canvases of a page: texts with their places."""
    script = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": RECORDED})

    def texts(canvas: str) -> list[Any]:
        browser.execute_script("window.written = {}; dispatchEvent(new Event('resize'))")
        painted(browser)
        return browser.execute_script("return window.written[arguments[0]]", canvas)

    yield texts
    browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


@pytest.mark.full
def test_the_first_finding_has_its_numbers_on_a_narrow_screen(
    browser, troubles, screen, written, tmp_path: Path
) -> None:
    screen(420, 900)
    open_page(browser, troubles, tmp_path)
    first = browser.find_element(By.CSS_SELECTOR, ".finding")
    assert first.get_attribute("open")
    assert "1 tick missed, 5 ticks started late, 1 deadline overrun" in first.text
    axis = [text for text, _, y in written("gantt") if y == 13 and ":" in text]
    assert len(axis) >= 3, axis


@pytest.mark.full
def test_each_failed_job_is_put_down_to_a_cause(browser, troubles, tmp_path: Path) -> None:
    failed = sum(1 for job in troubles["jobs"] if job["outcome"] == "Failed")
    assert sum(share[1] for share in troubles["failures"]) == failed == 18
    unknown = [[0], 4, "for a reason that the record does not tell (TK409)", "TK409", True]
    open_page(browser, {**troubles, "failures": [*troubles["failures"], unknown]}, tmp_path)
    told = browser.find_element(By.ID, "failed").text
    assert told.startswith("22 Jobs failed: 9 as their containers ended with an error (TK401), ")
    assert "4 for a reason that the record does not tell" in told
    assert " other causes (" in told


@pytest.mark.full
def test_names_are_cut_where_they_tell_least(browser, screen, written, tmp_path: Path) -> None:
    data = synthetic(2, 1, "nightly-import-of-the-shop")
    job = data["jobs"][0]
    job["namespace"] = "team-of-the-warehouse"
    job["pods"][0][1], job["pods"][0][2] = f"{job['job']}-0-x7k2p", 0
    screen(420, 900)
    open_page(browser, data, tmp_path)
    browser.find_element(By.ID, "open-all").click()
    labels = [text.strip() for text, x, _ in written("gantt") if x == 8]
    assert "[0] …-0-x7k2p" in labels
    assert any(re.fullmatch(r"▾ …/n\S+…\S*-shop-0", label) for label in labels), labels
    screen(1400, 900)
    labels = [text.strip() for text, x, _ in written("gantt") if x == 8]
    assert "[0] nightly-import-of-the-shop-0-0-x7k2p" in labels or "[0] …-0-x7k2p" in labels


@pytest.mark.full
def test_the_overview_has_the_axis_of_the_timeline_and_says_when_not(
    browser, troubles, written, tmp_path: Path
) -> None:
    open_page(browser, troubles, tmp_path)
    assert "UTC, the whole record" in [text for text, *_ in written("gantt")]
    start = browser.execute_script(
        "return Math.round(Math.min(270, document.getElementById('frame').clientWidth * 0.35))"
    )
    at_start = [x for text, x, _ in written("minimap") if text == "01:45:10"]
    assert abs(at_start[0] - start) <= 2
    keys(browser, "+")
    assert "UTC, a part of it (0 shows all)" in [text for text, *_ in written("gantt")]
    keys(browser, "0")


@pytest.mark.full
def test_a_colour_means_one_thing(browser, troubles, tmp_path: Path) -> None:
    """Beside each colour of the legend stands what it means; no two meanings share one."""
    open_page(browser, troubles, tmp_path)
    meanings: dict[str, set[str]] = {}
    for colour, text in browser.execute_script(
        "return [...document.querySelectorAll('#keys i[style], #keys .bad, #keys .late, "
        "#keys .good')].map(e => [getComputedStyle(e)[e.tagName === 'I' ? 'backgroundColor' : "
        "'color'], (e.tagName === 'I' ? e.parentNode : e).textContent])"
    ):
        meanings.setdefault(colour, set()).add(text)
    families = [
        {"Pending", "Suspended", "without"}, {"Scheduled"}, {"Running"}, {"Ready"}, {"started"},
        {"Terminating", "Deleted"}, {"Succeeded", "Complete"}, {"Failed", "missed", "error", "divergence"},
        {"warning"}, {"Unknown"}, {"gap"},
    ]  # fmt: skip
    for colour, texts in meanings.items():
        of = {
            place for text in texts for place, family in enumerate(families)
            if any(word in text for word in family)
        }  # fmt: skip
        assert len(of) == 1, (colour, texts)


@pytest.mark.full
def test_search_opens_the_first_with_enter(browser, troubles, tmp_path: Path) -> None:
    open_page(browser, troubles, tmp_path)
    browser.find_element(By.ID, "search").send_keys("overrun", Keys.ENTER)
    details = browser.find_element(By.ID, "details")
    until(browser, lambda: details.is_displayed() and "t-troubles/overrun" in details.text)
    assert errors(browser) == []


@pytest.mark.full
def test_pods_are_shown_by_node_and_leaders_by_time(browser, tmp_path: Path) -> None:
    data = synthetic(3, 2)
    for number, job in enumerate(data["jobs"]):
        for pod in job["pods"]:
            pod[4] = f"node-{number % 2}"
    data["leaders"] = [[0.0, 2e4, "a"], [4e4, None, "b"]]
    open_page(browser, data, tmp_path)
    height = "return Number.parseInt(document.getElementById('spacer').style.height)"
    before = browser.execute_script(height)
    keys(browser, Keys.HOME, *[Keys.ARROW_DOWN] * 3, Keys.ENTER)  # leader, edits, warnings, nodes
    assert browser.execute_script(height) == before + 2 * 20
    closed = painted(browser)
    keys(browser, Keys.ENTER)
    assert browser.execute_script(height) == before
    assert painted(browser) != closed
    assert "another took over" in browser.find_element(By.ID, "keys").text
    assert errors(browser) == []


@pytest.mark.full
def test_each_outcome_of_a_due_time_has_a_sign_of_its_own(
    browser,
    troubles,
    tmp_path: Path,
) -> None:
    cron = {**troubles["crons"][0], "ticks": []}
    pictures, signs = set(), []
    for outcome in ("started", "missed", "skipped", "suspended", "pending", "unknown"):
        tick = [1e4, outcome, None, None, None, ""]
        open_page(browser, {**troubles, "crons": [{**cron, "ticks": [tick]}]}, tmp_path)
        pictures.add(painted(browser))
        (sign,) = re.findall(rf"(\S) {outcome}\b", browser.find_element(By.ID, "keys").text)
        signs.append(sign)
    assert len(set(signs)) == len(signs) == 6
    # Suspended, pending and unknown had one ring in greys that nobody tells apart.
    assert len(pictures) == 6
    assert errors(browser) == []


@pytest.mark.full
def test_two_jobs_stand_side_by_side(browser, troubles, tmp_path: Path) -> None:
    open_page(browser, troubles, tmp_path)
    details = browser.find_element(By.ID, "details")
    browser.execute_script("location.hash = 'job=t-troubles%2Foverrun'")
    until(browser, lambda: "t-troubles/overrun" in details.text)
    details.find_element(By.CSS_SELECTOR, ".compare").click()
    browser.execute_script("location.hash = 'job=t-troubles%2Foom'")
    until(browser, lambda: details.find_elements(By.CSS_SELECTOR, ".comparison"))
    told = details.find_element(By.CSS_SELECTOR, ".comparison").text
    assert "≠ outcome" in told
    assert "t-troubles/overrun t-troubles/oom" in told
    assert "tracekit compare " in told
    assert errors(browser) == []


@pytest.mark.full
def test_a_link_brings_the_timeline_into_sight(browser, troubles, screen, tmp_path: Path) -> None:
    screen(1400, 500)
    open_page(browser, troubles, tmp_path)
    assert top_of(browser, "timeline") > 225
    browser.execute_script("location.hash = 'job=t-troubles%2Foverrun&t=9000'")
    details = browser.find_element(By.ID, "details")
    until(browser, lambda: "t-troubles/overrun" in details.text)
    assert top_of(browser, "timeline") < 225


@pytest.mark.full
def test_a_finding_about_a_leader_shows_when_nobody_led(browser, tmp_path: Path) -> None:
    data = synthetic(60, 1)
    lease = ["Lease", "kube-system", "kube-controller-manager", "", "42 s", 2e4, 4e4]
    of_leader = {**data["findings"][0], "id": "TK208", "from": 2e4, "until": 4e4, "cases": [lease]}
    unknown = {**of_leader, "id": "TK901", "from": None, "until": None}
    data["findings"] = [*data["findings"], of_leader, unknown]
    open_page(browser, data, tmp_path)
    whole = painted(browser)
    browser.execute_script("location.hash = 'finding=1'")
    until(browser, lambda: painted(browser) != whole)
    assert count(browser) == "60 of 60 Jobs"  # it is about none of them, and hides none
    box = browser.find_elements(By.CSS_SELECTOR, ".finding")[2]
    assert "since" not in box.text
    assert errors(browser) == []


@pytest.mark.full
def test_a_finding_about_many_shows_each_when_it_is_asked(browser, tmp_path: Path) -> None:
    data = synthetic(120, 1)
    found = data["findings"][0]
    found["cases"] = [["Job", "ns", f"job-{n}", f"uid-{n}", "", 0.0, 9e4] for n in range(120)]
    found["left"] = 7
    open_page(browser, data, tmp_path)
    cases = ".finding li"
    assert len(browser.find_elements(By.CSS_SELECTOR, cases)) == 41
    more = browser.find_element(By.CSS_SELECTOR, ".finding .rest")
    assert more.text == "124 more"
    more.click()
    shown = [item.text for item in browser.find_elements(By.CSS_SELECTOR, cases)]
    assert shown == [*(f"ns/job-{n}" for n in range(120)), "and 7 more"]
    assert errors(browser) == []


def test_ten_thousand_jobs_are_one_page(browser, tmp_path: Path) -> None:
    open_page(browser, synthetic(10_000, 3), tmp_path)
    assert (tmp_path / "report.html").stat().st_size < 10_000_000
    assert count(browser) == "10,000 of 10,000 Jobs"
    assert errors(browser) == []


@pytest.mark.full
def test_what_happened_and_who_wrote_of_the_time_that_is_seen(
    browser, troubles, tmp_path: Path
) -> None:
    open_page(browser, troubles, tmp_path)
    details = browser.find_element(By.ID, "details")
    browser.find_element(By.ID, "happened").click()
    until(browser, lambda: details.text.startswith("Close\nWhat happened, "))
    assert "tracekit timeline " in details.text
    rows = details.find_elements(By.CSS_SELECTOR, ".account > li")
    assert len(rows) == min(500, len(troubles["happenings"]))
    details.find_element(By.CSS_SELECTOR, "input").click()
    bad = sum(row[6] for row in troubles["happenings"])
    until(
        browser, lambda: len(details.find_elements(By.CSS_SELECTOR, ".bad-step")) == min(bad, 500)
    )
    assert not details.find_elements(By.CSS_SELECTOR, ".account > li:not(.bad-step)")
    keys(browser, "w", "w", "w", "e")  # zoomed in, and asked again
    until(browser, lambda: len(details.find_elements(By.CSS_SELECTOR, ".account > li")) < bad)
    keys(browser, "0", "c")
    until(browser, lambda: details.text.startswith("Close\nWho changed what, "))
    assert "job-controller" in details.find_element(By.CSS_SELECTOR, ".account").text
    browser.execute_script("location.hash = 'who=ttl-after-finished-controller'")
    until(
        browser,
        lambda: (
            {e.text for e in details.find_elements(By.CSS_SELECTOR, ".account > li > b")}
            == {"ttl-after-finished-controller"}
        ),
    )
    # A link may name one who wrote nothing: nobody else is said to have written nothing.
    browser.execute_script("location.hash = 'who=nobody@example.com'")
    until(browser, lambda: "nobody@example.com wrote nothing then" in details.text)
    chosen = "return document.querySelector('#details select').selectedOptions[0].textContent"
    assert browser.execute_script(chosen) == "nobody@example.com (0)"
    assert errors(browser) == []


@pytest.mark.full
def test_a_served_page_asks_for_what_it_shows(browser, session_of, monkeypatch) -> None:  # noqa: F811
    monkeypatch.setattr(answers_module, "MAX_JOBS", 20)
    answers = Answers(session_of("v1.36.3-troubles"), None, ALWAYS, None)
    server = ReportServer(answers, address="127.0.0.1", port=0)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        browser.get(server.url)
        ready(browser)
        # What is seen comes first; the page shows by itself what was found.
        found = browser.find_element(By.ID, "finding-list")
        assert found.text.startswith("The record is being judged")
        assert count(browser) == "20 of 20 Jobs"
        server.judge()
        until(browser, lambda: browser.find_elements(By.CSS_SELECTOR, ".finding"))
        ready(browser)
        assert count(browser) == "20 of 20 Jobs"
        said = browser.find_element(By.ID, "served")
        assert said.text.startswith("Here: 20 of 48 Jobs, those in trouble first.")
        browser.execute_script("location.hash = 'job=t-troubles%2Foverrun'")
        details = browser.find_element(By.ID, "details")
        until(browser, lambda: "What happened" in details.text)
        assert "TK424" in details.text
        keys(browser, "e")
        until(browser, lambda: details.text.startswith("Close\nWhat happened, "))
        keys(browser, "c")
        until(browser, lambda: details.text.startswith("Close\nWho changed what, "))
        # A search in the record, not only in what is here.
        keys(browser, "0")
        browser.find_element(By.ID, "search").send_keys("oom")
        until(browser, lambda: not count(browser).startswith("20"))
        browser.find_element(By.ID, "again").click()
        until(browser, lambda: "words oom" in browser.find_element(By.ID, "served").text)
        ready(browser)
        assert browser.find_element(By.ID, "served").text.startswith("Here: 4 Jobs (words oom). ")
        asked = browser.execute_script(
            "return performance.getEntriesByType('resource').map(e => e.name)"
        )
        assert [name for name in asked if not name.startswith(("data:", server.url))] == []
        assert errors(browser) == []
    finally:
        server.stop()
        thread.join()
        server.close()
    browser.execute_script("location.hash = 'timeline'")
    details = browser.find_element(By.ID, "details")
    until(browser, lambda: " ended" in details.text)
    assert all("Failed to load resource" in entry["message"] for entry in errors(browser))


@pytest.mark.full
def test_it_prints_whole(browser, troubles, tmp_path: Path) -> None:
    open_page(browser, troubles, tmp_path)
    choose_job(browser)
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    pdf = base64.b64decode(printed)
    assert pdf.startswith(b"%PDF")
    # Ink on paper, whatever the screen has; and the screen gets its colours back.
    browser.execute_script("document.documentElement.dataset.theme = 'dark'")
    panel = "return getComputedStyle(document.querySelector('.tile')).backgroundColor"
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert browser.execute_script(panel) == "rgb(255, 255, 255)"
    # Pictures are drawn as wide as the paper, not squeezed from the screen's width.
    wide = "return document.getElementById('gantt').getBoundingClientRect().width"
    assert browser.execute_script(wide) <= 718
    # Of words only those are broken that no column has room for.
    words = (
        "return [...document.querySelectorAll('td')].map(c => [c.textContent, 'long' in c.dataset])"
    )
    for text, is_long in browser.execute_script(words):
        assert is_long == any(len(word) > 16 for word in text.split()), text
    assert len(browser.find_elements(By.CSS_SELECTOR, ".finding[open]")) == len(
        troubles["findings"]
    )
    browser.execute_script("dispatchEvent(new Event('afterprint'))")
    assert browser.execute_script(panel) != "rgb(255, 255, 255)"
    assert browser.execute_script(wide) > 718
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 3
    assert errors(browser) == []


@pytest.mark.full
def test_a_cronjob_and_a_what_if_can_be_reported_on(
    session_of,  # noqa: F811
    trace_path,  # noqa: F811
    browser,
    tmp_path: Path,
) -> None:
    data = report_data(session_of("v1.36.3-troubles"), "t-troubles/hangs")
    assert [cron["name"] for cron in data["crons"]] == ["hangs"]
    assert {job["cronjob"] for job in data["jobs"]} == {"hangs"}
    assert {"TK304"} <= {finding["id"] for finding in data["findings"]}
    other = Session([trace_path("v1.36.3-troubles")], rules=AskedRules("v1.30.14"))
    data = report_data(other)
    open_page(browser, data, tmp_path)
    assert "by the rules of v1.30.14" in browser.find_element(By.ID, "subtitle").text


@pytest.mark.full
def test_a_number_leads_to_as_many_jobs_and_a_card_has_commands(
    browser, real, tmp_path: Path
) -> None:
    open_page(browser, real, tmp_path)
    numbers = browser.find_elements(By.CSS_SELECTOR, "#failed a")
    assert len(numbers) > 1
    for link in numbers:
        browser.execute_script("location.hash = ''")
        link.click()
        until(browser, lambda said=link.text: count(browser) == f"{said} of 250 Jobs")
    card = browser.find_element(By.CSS_SELECTOR, "#finding-list .finding")
    name = card.find_element(By.TAG_NAME, "a").text
    said = [code.text for code in card.find_elements(By.CSS_SELECTOR, ".command code")]
    assert said[0] == f"tracekit explain {real['trace']} {name}"
    text = browser.find_element(By.ID, "finding-list").get_attribute("textContent")
    assert not re.search(r"\b(TRACE|NAMESPACE|NAME)\b", text)
    ends = browser.find_elements(By.CSS_SELECTOR, "#reasons b")
    assert sum(int(one.text) for one in ends) == sum(job["pods_failed"] for job in real["jobs"])
    assert errors(browser) == []


@pytest.mark.full
def test_names_that_are_shortened_stay_different(browser, real, tmp_path: Path) -> None:
    long = "a-long-name-that-has-no-room-in-the-column"
    jobs = [
        {**job, "job": f"{long}-{'abcdefgh'[n]}-of-which-the-end-is-the-same-again-in-all"}
        for n, job in enumerate(real["jobs"][:8])
    ]
    open_page(browser, {**real, "jobs": jobs, "findings": [], "failures": []}, tmp_path)
    drawn = browser.execute_async_script(
        """
        const done = arguments[0], said = [], of = CanvasRenderingContext2D.prototype;
        const own = of.fillText;
        of.fillText = function (text, ...at) { if (this.canvas.id === "gantt") said.push(text); own.call(this, text, ...at); };
        dispatchEvent(new Event("resize"));
        requestAnimationFrame(() => requestAnimationFrame(() => { of.fillText = own; done(said); }));
        """
    )
    names = {text for text in drawn if "…" in text}
    assert len(names) >= 8, drawn
    assert errors(browser) == []
