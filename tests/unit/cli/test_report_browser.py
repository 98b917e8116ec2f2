"""The report in a real browser: no script error, keyboard, search, zoom, both themes, 10,000 pods."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.sql.conftest import session_of, trace_path  # noqa: F401 - fixtures
from tests.sql.test_session import HOSTILE
from tracekit.report.html.data import PHASES, report_data
from tracekit.report.html.page import report_page

webdriver = pytest.importorskip("selenium.webdriver")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

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
    assert browser.execute_script("return document.documentElement.dataset.ready")


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


@pytest.fixture(scope="module")
def real(session_of):  # noqa: F811
    return report_data(session_of("v1.36.3-churn7"))


def test_keyboard_zoom_details_and_themes(browser, real, tmp_path: Path) -> None:
    open_page(browser, real, tmp_path)
    assert count(browser) == "250 of 250 Jobs"
    whole = painted(browser)
    keys(browser, "+")
    zoomed = painted(browser)
    assert zoomed != whole
    keys(browser, "0")
    assert painted(browser) == whole
    keys(browser, Keys.ARROW_DOWN, Keys.ENTER)
    details = browser.find_element(By.ID, "details")
    assert details.is_displayed()
    assert "Revisions" in details.text
    keys(browser, Keys.ESCAPE)
    assert not details.is_displayed()
    theme = browser.execute_script("return document.documentElement.dataset.theme")
    keys(browser, "t")
    assert browser.execute_script("return document.documentElement.dataset.theme") != theme
    assert painted(browser) != whole
    assert errors(browser) == []


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


def test_nothing_is_asked_of_the_network(browser, real, tmp_path: Path) -> None:
    open_page(browser, real, tmp_path)
    asked = browser.execute_script(
        "return performance.getEntriesByType('resource').map(e => e.name)"
    )
    assert [name for name in asked if not name.startswith("data:")] == []


def synthetic(jobs: int, pods: int, name: str = "job") -> dict[str, Any]:
    running = PHASES.index("Running")
    return {
        "schema_version": 1, "title": name, "version": None, "start_ns": str(10**18),
        "span_ms": 1e6, "phases": PHASES, "gaps": [["pods", 1000, 5000, name]], "ticks": [],
        "running": [[0, 0], [10, 3]], "judged": None, "problems": [name],
        "jobs": [
            {
                "trace": "t", "namespace": "ns", "job": f"{name}-{j}", "cronjob": None,
                "outcome": "Failed" if j % 9 == 0 else "Complete", "reason": name, "message": name,
                "created": j * 900.0, "started": j * 900.0, "finished": j * 900.0 + 9e4,
                "gone": None, "queue_s": 1.0, "duration_s": 90.0, "backoff_s": 0, "retries": 0,
                "pod_count": pods, "pods_failed": 0, "restarts": 0, "succeeded": pods, "failed": 0,
                "parallelism": 1, "completions": 1, "backoff_limit": 6, "image": name,
                "pods": [
                    [f"{name}-{j}-{p}", p, 1, "n", "Succeeded", 0, name, "container", 0, 1.0, 2.0,
                     [[running, j * 900.0 + p, j * 900.0 + 9e4 - p]]]
                    for p in range(pods)
                ],
                "actions": [[j * 900.0, "pod-create", name, name, 1]],
                "history": [[j * 900.0, 1, [name], name, [[name, name, {"a": name}]]]] * 2,
                "events": [[1.0, "Normal", name, name, 1]],
                "verdicts": [[j * 900.0, "pod-create", "extra", name, name, [[name, name, name]]]],
            }
            for j in range(jobs)
        ],
    }  # fmt: skip


def test_ten_thousand_pods_open_and_scroll(browser, tmp_path: Path) -> None:
    open_page(browser, synthetic(500, 20), tmp_path)
    browser.find_element(By.ID, "open-all").click()
    top = painted(browser)
    keys(browser, Keys.END)
    assert painted(browser) != top
    assert errors(browser) == []


def test_hostile_names_run_nothing(browser, tmp_path: Path) -> None:
    name = HOSTILE + "<img src=x onerror=alert(3)></script><script>document.title='owned'</script>"
    open_page(browser, synthetic(3, 2, name), tmp_path)
    keys(browser, Keys.ARROW_DOWN, Keys.ENTER)
    assert browser.find_element(By.ID, "details").is_displayed()
    assert browser.title != "owned"
    assert browser.find_elements(By.CSS_SELECTOR, "#details img, #details script") == []
    assert errors(browser) == []
