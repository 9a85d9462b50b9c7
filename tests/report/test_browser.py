"""The page in a real browser: it renders without complaint, at every width, in light and in dark."""

from __future__ import annotations

import dataclasses

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from cavity.report.collect import summarize
from cavity.report.page import write_page
from pages import show
from report.helpers import HOSTILE, layer, outcome, summary

PHONE, TABLET, DESKTOP = 390, 768, 1280
LONG = "a_run_with_a_name_that_never_ends_" * 4

#: Boxes of everything that should be seen: [tag, class, width, height].
SIZES = """return [...document.querySelectorAll("figure, svg, img, table, .numbers div")].map(node => {
  const box = node.getBoundingClientRect();
  return [node.tagName, node.getAttribute("class") || "", box.width, box.height];
})"""
#: Whatever reaches beyond the right edge, unless it scrolls by itself.
OVERFLOW = """return [...document.querySelectorAll("body *")].filter(node =>
  !node.closest(".scroll") && node.getBoundingClientRect().right > innerWidth + 1
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
    }
    return {name: write_page(runs, folder / f"{name}.html") for name, runs in kinds.items()}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, PHONE, 600, TABLET, 1000, DESKTOP])
@pytest.mark.parametrize("name", ["trained", "several", "hostile", "table", "deep", "empty"])
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
