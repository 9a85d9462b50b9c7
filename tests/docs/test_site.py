"""The whole site: built strictly, and opened from the disk in a browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time

import pytest

from docs.blocks import ROOT
from pages import show

PAGES = ("index.html", "start.html", "cli.html", "uncertainty.html", "gallery/index.html", "api/estimator.html")
#: Wait this long, at most, for the search to start in its frame.
PATIENCE = 60


# The build runs the gallery.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocstrings", reason="needs the docs extra")
    folder = tmp_path_factory.mktemp("site")
    environment = os.environ | {"CAVITY_REPOSITORY": "https://example.org/cavity", "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_a_page_has_its_notebook_its_script_and_its_pictures(site):
    for path in (ROOT / "docs" / "gallery").glob("*.py"):
        for name in (f"{path.stem}.html", f"{path.stem}.ipynb", f"{path.stem}.py", f"{path.stem}-1.png"):
            assert (site / "gallery" / name).is_file()


def test_signatures_show_values_of_defaults(site):
    """``weights`` is a name of the recipe in the source."""
    text = re.sub("<[^>]+>", "", (site / "api" / "estimator.html").read_text())
    assert 'weights: str = "gaussian",' in text


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_and_needs_nothing_from_elsewhere(site, browser, page, width, scheme):
    show(browser, site / page, width, scheme)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    loaded = browser.execute_script("return performance.getEntriesByType('resource').map(one => one.name)")
    assert [name for name in loaded if not name.startswith(("file:", "data:"))] == []
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") is (scheme == "light")
    assert browser.execute_script("return document.querySelector('.md-source').href") == "https://example.org/cavity"


def test_the_search_works_from_the_disk(site, browser):
    show(browser, site / "index.html")
    browser.execute_script(
        "document.querySelector('[data-md-toggle=search]').click();"
        "const input = document.querySelector('.md-search__input'); input.focus(); input.value = 'calibration';"
        "input.dispatchEvent(new Event('input')); input.dispatchEvent(new KeyboardEvent('keyup'));"
    )
    count = "return document.querySelectorAll('.md-search-result__item').length"
    end = time.monotonic() + PATIENCE
    while not browser.execute_script(count) and time.monotonic() < end:
        time.sleep(0.2)
    assert browser.execute_script(count) > 0
