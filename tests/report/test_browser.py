"""The page in a real browser: it renders without complaint, at every width, in light and in dark."""

from __future__ import annotations

import dataclasses
import threading

import numpy as np
import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from cavity.report.collect import summarize
from cavity.report.page import page, write_page
from cavity.report.serve import Page, Served, Server
from cavity.report.summary import FeatureMaps
from pages import show
from report.helpers import HOSTILE, layer, outcome, record, summary

PHONE, TABLET, DESKTOP = 390, 768, 1280
LONG = "a_run_with_a_name_that_never_ends_" * 4

#: Boxes of everything that should be seen: [tag, class, width, height].
SIZES = """return [...document.querySelectorAll("figure, svg, img, table, .numbers div")].map(node => {
  const box = node.getBoundingClientRect();
  return [node.tagName, node.getAttribute("class") || "", box.width, box.height];
})"""
#: Whatever reaches beyond the right edge, unless it scrolls by itself.
OVERFLOW = """return [...document.querySelectorAll("body *")].filter(node =>
  !node.closest(".scroll, .controls") && node.getBoundingClientRect().right > innerWidth + 1
).map(node => node.outerHTML.slice(0, 200))"""
#: Letters of charts as they appear, in pixels, without the counts in cells, which are as large as there is room.
LETTERS = """return [...document.querySelectorAll("figure text:not([style*=font-size])")].map(node =>
  parseFloat(getComputedStyle(node).fontSize) * node.ownerSVGElement.getBoundingClientRect().width
  / node.ownerSVGElement.viewBox.baseVal.width)"""
#: Contrast of a colour on another, as the accessibility guidelines define it.
CONTRAST = """
const light = name => {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const parts = getComputedStyle(probe).color.match(/[0-9.]+/g).slice(0, 3).map(v => v / 255);
  probe.remove();
  const [r, g, b] = parts.map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const [a, b] = [light(arguments[0]), light(arguments[1])].sort((x, y) => y - x);
return (a + 0.05) / (b + 0.05);"""


def seeds() -> list:
    """Two runs that differ in their seed, and another of more epochs; every epoch takes the same time."""
    runs = [summary(f"mf-seed{n}", 4, config=(("seed", str(n)),), facts=(("Machine", "a"),)) for n in range(2)]
    falling = tuple(record(epoch, test_error=3 * 25 / epoch) for epoch in range(1, 5))
    runs[1] = dataclasses.replace(runs[1], records=falling)
    maps = FeatureMaps("Layer 1", "sign", (0, 1), np.linspace(-1, 1, 2 * 8 * 9).reshape(2, 8, 3, 3), 8)
    images = (np.arange(64, dtype=np.uint8).reshape(8, 8),) * 2
    other = summary("=other", 8, chosen=frozenset({"epochs"}), maps=(maps,), map_images=images)
    return [*runs, other]


@pytest.fixture(scope="module")
def pages(trained, tmp_path_factory):
    """Pages of all kinds, by name."""
    folder = tmp_path_factory.mktemp("pages")
    real = summarize("digits", trained.config, trained.history, trained.net, trained.dataset)
    many = outcome(tuple(f"class number {n}" for n in range(30)))
    kinds = {
        "trained": [real],
        "several": [real, summary("b", 40), dataclasses.replace(real, name=LONG)],
        "hostile": [summary(HOSTILE, config=((HOSTILE, LONG),), notes=(HOSTILE,), data=HOSTILE)],
        "table": [summary(test=outcome(image=False), first_layer=None, epochs=1)],
        "deep": [summary("deep", layers=tuple(layer(n) for n in range(1, 8)), test=many)],
        "empty": [summary(records=(), test=None, first_layer=None)],
        "seeds": seeds(),
    }
    return {name: write_page(runs, folder / f"{name}.html") for name, runs in kinds.items()}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, PHONE, 600, TABLET, 1000, DESKTOP])
@pytest.mark.parametrize("name", ["trained", "several", "hostile", "table", "deep", "empty", "seeds"])
def test_page_renders_without_complaint(browser, pages, name, width, scheme):
    show(browser, pages[name], width, scheme)
    assert browser.get_log("browser") == []
    sizes = browser.execute_script(SIZES)
    assert sizes
    assert [box for box in sizes if box[2] < 8 or box[3] < 8] == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(OVERFLOW) == []
    letters = browser.execute_script(LETTERS)
    assert all(9.5 < size < 20 for size in letters)


def test_pictures_are_decoded(browser, pages):
    show(browser, pages["trained"])
    widths = browser.execute_script("return [...document.images].map(image => image.naturalWidth)")
    assert set(widths) == {8}


def test_nothing_is_fetched(browser, pages):
    show(browser, pages["several"])
    fetched = browser.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)")
    assert [name for name in fetched if not name.startswith("data:")] == []


def test_words_of_users_do_not_run(browser, pages):
    show(browser, pages["hostile"])
    assert browser.find_element(By.TAG_NAME, "h1").text.startswith("</title><script>alert(1)</script>")
    assert browser.title.startswith("</title><script>")
    assert browser.execute_script("return document.scripts.length") == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_scheme_and_are_legible(browser, pages, scheme):
    show(browser, pages["trained"], scheme=scheme)
    ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(18, 22, 28)")
    assert browser.execute_script(CONTRAST, "--ink", "--card") > 10
    assert browser.execute_script(CONTRAST, "--soft", "--paper") > 4.5
    assert browser.execute_script(CONTRAST, "--agree", "--paper") > 4.5
    assert browser.execute_script(CONTRAST, "--differ", "--card") > 4.5
    for number in range(8):
        assert browser.execute_script(CONTRAST, f"--c{number}", "--card") > 3


def test_pointing_at_a_chart_shows_its_numbers(browser, pages, trained):
    show(browser, pages["trained"])
    chart = browser.find_element(By.CSS_SELECTOR, "#error svg[data-lines]")
    tip = browser.find_element(By.CLASS_NAME, "tip")
    assert not tip.is_displayed()
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", chart)

    def pointed(_: object) -> bool:
        # A move before the scrolled page has been drawn meets what was there: a hand goes on moving.
        ActionChains(browser).move_to_element_with_offset(chart, 0, 3).move_to_element(chart).perform()
        return tip.is_displayed()

    WebDriverWait(browser, 10).until(pointed)
    lines = tip.text.splitlines()
    assert lines[0] == "epoch 2"
    assert lines[1:3] == ["test", f"{trained.history[1].test_error:.5g}"]
    assert len(chart.find_elements(By.CLASS_NAME, "dot")) == 4


def test_arrow_keys_walk_through_the_epochs(browser, pages):
    show(browser, pages["trained"])
    chart = browser.find_element(By.CSS_SELECTOR, "#nll svg[data-lines]")
    tip = browser.find_element(By.CLASS_NAME, "tip")
    browser.execute_script("arguments[0].focus({preventScroll: true})", chart)
    seen = []
    for _ in range(4):
        ActionChains(browser).send_keys(Keys.ARROW_RIGHT).perform()
        seen.append(tip.text.splitlines()[0])
    assert seen == ["epoch 1", "epoch 2", "epoch 3", "epoch 3"]
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    assert not tip.is_displayed()


def test_tooltips_stay_on_a_phone(browser, pages):
    show(browser, pages["several"], PHONE)
    chart = browser.find_element(By.CSS_SELECTOR, "#test-error svg[data-lines]")
    browser.execute_script("arguments[0].focus()", chart)
    for key in (Keys.ARROW_LEFT, Keys.ARROW_RIGHT, *[Keys.ARROW_LEFT] * 20):
        ActionChains(browser).send_keys(key).perform()
        box = browser.execute_script("return document.querySelector('.tip').getBoundingClientRect().toJSON()")
        assert box["left"] >= 0
        assert box["right"] <= PHONE


#: How often a live page has asked its server.
LOOKED = "return performance.getEntriesByType('resource').filter(entry => entry.initiatorType === 'fetch').length"
#: Points of the curves of a chart that the script has drawn, by class: [[x, y], …] in pixels.
DRAWN = """return [...document.querySelectorAll(arguments[0] + " path.curve")].map(path =>
  [path.getAttribute("class"), path.getAttribute("d").slice(1).split("L").map(p => p.split(" ").map(Number))])"""
TEXTS = """return [...document.querySelectorAll(arguments[0] + " text")].map(node => node.textContent)"""


def click(browser, *names):
    for name in names:
        browser.execute_script("document.querySelector(arguments[0]).click()", name)


@pytest.fixture
def controls(browser, pages):
    """The page of seeds, with no control touched yet."""
    show(browser, pages["seeds"])
    browser.execute_script("sessionStorage.clear()")
    show(browser, pages["seeds"])
    return browser


def shown(browser, name):
    return browser.find_element(By.CSS_SELECTOR, name).is_displayed()


def test_a_run_is_hidden_everywhere_and_comes_back(controls):
    click(controls, ".chip input[data-run='2']")
    assert len(controls.execute_script(DRAWN, "#test-error")) == 4
    assert not shown(controls, "#comparison tr[data-run='2']")
    assert not shown(controls, "#magnetisation-3-1")
    assert shown(controls, "#magnetisation-1-1")
    assert [item.text for item in controls.find_elements(By.CSS_SELECTOR, "#test-error .legend li")] == [
        "mf-seed0",
        "mf-seed1",
    ]
    click(controls, "#reset")
    assert shown(controls, "#magnetisation-3-1")
    assert len(controls.execute_script(DRAWN, "#test-error")) == 6
    assert not shown(controls, "#reset")
    assert controls.get_log("browser") == []


def test_a_logarithmic_axis_makes_powers_straight(controls):
    click(controls, "#log-y", "#log-x")
    # The error falls like 1/epoch: a straight line where both axes are logarithmic.
    points = np.array(dict(controls.execute_script(DRAWN, "#test-error"))["curve c0"])
    slopes = np.diff(points[:, 1]) / np.diff(points[:, 0])
    assert slopes == pytest.approx([slopes[0]] * len(slopes), rel=0.02)
    words = controls.execute_script(TEXTS, "#test-error")
    assert "error (%), log scale" in words
    assert "epoch, log scale" in words
    overlap = controls.execute_script(TEXTS, "#overlap-1")
    assert "⟨q_ab⟩" in overlap, "values below 0 have no logarithm"


def test_time_is_the_sum_of_the_seconds(controls):
    click(controls, "#by-time")
    assert "training time (s)" in controls.execute_script(TEXTS, "#test-error")
    chart = controls.find_element(By.CSS_SELECTOR, "#test-error svg")
    controls.execute_script("arguments[0].focus({preventScroll: true})", chart)
    for _ in range(2):
        ActionChains(controls).send_keys(Keys.ARROW_RIGHT).perform()
    assert controls.find_element(By.CLASS_NAME, "tip").text.splitlines()[0] == "3 s"


def test_runs_of_several_seeds_become_their_mean_and_a_band(controls):
    click(controls, "#by-seed")
    names = [item.text for item in controls.find_elements(By.CSS_SELECTOR, "#test-error .legend li")]
    assert names == ["mf", "=other"]
    assert len(controls.find_elements(By.CSS_SELECTOR, "#test-error .band")) == 2, "point-wise and Bayesian"
    chart = controls.find_element(By.CSS_SELECTOR, "#test-error svg")
    controls.execute_script("arguments[0].focus({preventScroll: true})", chart)
    ActionChains(controls).send_keys(Keys.ARROW_RIGHT).perform()
    # 25 and 75 in the first epoch: 50 ± 35.36.
    assert controls.find_element(By.CLASS_NAME, "tip").text.splitlines()[1:3] == ["mf", "50 ± 35"]


def test_smoothing_is_a_weighted_mean_of_what_came_before(controls):
    script = "const s = document.getElementById('smooth'); s.value = 0.5; s.dispatchEvent(new Event('input'))"
    controls.execute_script(script)
    chart = controls.find_element(By.CSS_SELECTOR, "#test-error svg")
    controls.execute_script("arguments[0].focus({preventScroll: true})", chart)
    for _ in range(2):
        ActionChains(controls).send_keys(Keys.ARROW_RIGHT).perform()
    # (0.5·25 + 12.5)/1.5 after 25 and 12.5.
    assert controls.find_element(By.CLASS_NAME, "tip").text.splitlines()[1:3] == ["mf-seed0", "16.667"]
    assert len(controls.find_elements(By.CSS_SELECTOR, "#test-error .raw")) == 6


def test_tables_are_sorted_by_their_numbers_both_ways(controls):
    button = "#comparison thead th:nth-child(2) button"

    def order():
        return [row.text.split()[0] for row in controls.find_elements(By.CSS_SELECTOR, "#comparison tbody tr")]

    click(controls, button)
    assert order() == ["=other", "mf-seed0", "mf-seed1"]
    click(controls, button)
    assert order() == ["mf-seed1", "mf-seed0", "=other"]
    head = controls.find_element(By.CSS_SELECTOR, "#comparison thead th:nth-child(2)")
    assert head.get_attribute("aria-sort") == "descending"


def test_a_reload_keeps_the_view(controls, pages):
    click(controls, "#log-y", ".chip input[data-run='0']")
    show(controls, pages["seeds"])
    assert controls.find_element(By.ID, "log-y").get_attribute("aria-pressed") == "true"
    assert not shown(controls, "#magnetisation-1-1")
    assert controls.get_log("browser") == []


def test_files_are_downloaded_with_the_names_of_runs_harmless(controls, tmp_path):
    where = {"behavior": "allow", "downloadPath": str(tmp_path)}
    controls.execute_cdp_cmd("Browser.setDownloadBehavior", where)
    click(controls, "a[download='runs.csv']")
    WebDriverWait(controls, 30).until(lambda _: (tmp_path / "runs.csv").exists())
    assert (tmp_path / "runs.csv").read_text(encoding="utf-8-sig").splitlines()[-1].startswith("'=other,pets,")
    assert controls.get_log("browser") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, PHONE, DESKTOP])
def test_every_view_fits(controls, pages, width, scheme):
    show(controls, pages["seeds"], width, scheme)
    click(controls, "#by-time", "#log-y", "#log-x", "#by-seed")
    assert controls.execute_script("return document.documentElement.scrollWidth") <= width
    assert controls.execute_script(OVERFLOW) == []
    for text in controls.execute_script(TEXTS, "#test-error"):
        assert "NaN" not in text
        assert "Infinity" not in text
    paths = controls.execute_script("return [...document.querySelectorAll('svg path')].map(p => p.getAttribute('d'))")
    assert not [d for d in paths if "NaN" in d or "Infinity" in d]
    click(controls, "#reset")
    assert controls.get_log("browser") == []


@pytest.mark.slow
def test_a_live_page_reloads_when_its_run_has_gone_on(browser):
    source = Page([])
    source.served = Served.of(page([summary("before", finished=False)], live=True))
    with Server(source) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        browser.get(server.address)
        assert browser.find_element(By.TAG_NAME, "h1").text == "before"
        WebDriverWait(browser, 30).until(lambda _: browser.execute_script(LOOKED) >= 1)
        source.served = Served.of(page([summary("after")], live=True))
        WebDriverWait(browser, 60, ignored_exceptions=[WebDriverException]).until(
            lambda _: browser.find_element(By.TAG_NAME, "h1").text == "after"
        )
        assert [entry for entry in browser.get_log("browser") if "favicon" not in entry["message"]] == []
        server.shutdown()
        thread.join()
    browser.get("about:blank")
