"""The page in a real browser: the same integers, a pen, an image from a file, sliders; light, dark and on a phone."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from PIL import Image
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

import cavity
from cavity.export import Inputs, Trained, describe, framed, to_html
from cavity.export.framing import framing
from cavity.packed import Confidence, PackedNetwork
from export.helpers import KINDS, network, samples, trained
from export.test_conformance import RUN
from export.test_python import HOSTILE
from pages import show

SURE = Confidence(200, 7, 180)
PHONE, DESKTOP = 390, 1200
OVERFLOW = """return [...document.querySelectorAll("body *")].filter(node =>
  node.getBoundingClientRect().right > innerWidth + 1).map(node => node.outerHTML.slice(0, 200))"""


def open_page(browser, path, width=DESKTOP, scheme="light"):
    show(browser, path, width, scheme)
    WebDriverWait(browser, 20).until(lambda b: b.execute_script("return document.body.dataset.state") == "ready")


def text(browser, name: str) -> str:
    return browser.find_element(By.ID, name).text


@pytest.fixture(scope="module")
def digits():
    """A network that was trained for a moment on 8×8 digits."""
    data = cavity.data.load("digits")
    net = cavity.mlp(64, (51,), 10, seed=0)
    cavity.Trainer(net, "mf", seed=0).fit((data.x_train, data.y_train), epochs=5, batch_size=64)
    inputs = Inputs.pixels(data.mean.numpy(), data.std.numpy(), 16)
    model = Trained(
        net, inputs, data.classes, image_shape=(1, 8, 8), confidence=Confidence(148, 7, 120), tested=(9, 10)
    )
    pixels = np.rint((data.x_test * data.std + data.mean).numpy() * 16).astype(np.uint8)
    return framed(model, pixels), pixels


@pytest.fixture(scope="module")
def pages(digits, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    colour = Trained(network((147, 9, 4)), Inputs.pixels(0.4, 0.2), confidence=SURE, image_shape=(3, 7, 7))
    statistics = np.array([1e-3, 50.0, -2e6]), np.array([1e-4, 7.0, 3e5])
    names = ("width", "a feature with a name that never ends, " * 4, HOSTILE[0])
    kinds = {
        "digits": digits[0],
        "colour": colour,
        "table": Trained(network((3, 9, 3)), Inputs.real(*statistics), HOSTILE, names, confidence=SURE),
        "many": Trained(network((300, 3)), Inputs.real()),
    }
    return {name: to_html(model, folder / f"{name}.html")[0] for name, model in kinds.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_computes_what_the_packed_network_does(kind: str, browser, tmp_path) -> None:
    model = dataclasses.replace(trained(kind), confidence=SURE)
    check(model, browser, tmp_path)


def check(model: Trained, browser, folder) -> None:
    packed = PackedNetwork(describe(model))
    x = samples(model.inputs, packed.n_features_in, 50)
    open_page(browser, to_html(model, folder / "net.html")[0])
    rows = browser.execute_async_script(RUN, x.tolist())
    assert [[int(score) for score in row[0]] for row in rows] == packed.scores(x).tolist()
    assert [row[1] for row in rows] == packed.predict(x).tolist()
    assert [row[2] for row in rows] == packed.confidence(x).tolist()
    assert browser.get_log("browser") == []


def test_sums_beyond_53_bits(browser, tmp_path) -> None:
    inputs = Inputs.pixels(np.repeat([0.2, 0.4, 0.7], 50), np.repeat([0.1, 0.25, 0.3], 50))
    model = Trained(network((150, 5), density=0.7), inputs, confidence=Confidence(200, 50, 180))
    check(model, browser, tmp_path)


def test_weights_of_eight_bits(browser, tmp_path) -> None:
    net = network((20, 9, 4), weights="gaussian", activation="sign")
    check(Trained(net, Inputs.pixels(0.3, 0.2), confidence=SURE), browser, tmp_path)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, PHONE, 700, DESKTOP])
@pytest.mark.parametrize("name", ["digits", "colour", "table", "many"])
def test_it_renders_without_complaint(name: str, width: int, scheme: str, browser, pages) -> None:
    open_page(browser, pages[name], width, scheme)
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(OVERFLOW) == []
    ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(245, 246, 248)" if scheme == "light" else "rgb(18, 22, 28)")
    fetched = browser.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)")
    assert fetched == []


def test_a_drawing_is_answered(browser, pages) -> None:
    open_page(browser, pages["digits"])
    assert text(browser, "class") == "Draw something"
    canvas = browser.find_element(By.ID, "canvas")
    box = canvas.rect

    def to(action, x: float, y: float):
        return action.move_to_element_with_offset(canvas, int((x - 0.5) * box["width"]), int((y - 0.5) * box["height"]))

    one = to(ActionChains(browser, duration=5), 0.5, 0.1).click_and_hold()
    to(to(one, 0.5, 0.5), 0.5, 0.9).release().perform()
    WebDriverWait(browser, 10).until(lambda b: text(b, "class") == "1")
    assert "sure" in text(browser, "sure")
    shares = [float(value.text.strip("<> %\u00a0")) for value in browser.find_elements(By.CSS_SELECTOR, "#bars .value")]
    assert len(shares) == 10
    assert sum(shares) == pytest.approx(100, abs=1)
    browser.find_element(By.ID, "clear").click()
    assert text(browser, "class") == "Draw something"


@pytest.mark.parametrize("ground", [0, 255])
def test_an_uploaded_image_is_framed_as_the_data_are(ground: int, browser, pages, digits, tmp_path) -> None:
    """A digit of the test set, enlarged and moved, on dark or on light ground, is taken for what it is."""
    model, pixels = digits
    classes = PackedNetwork(describe(model)).predict(pixels)
    answers = []
    for number in range(5):
        big = np.kron(pixels[number].reshape(8, 8) / 16 * 255, np.ones((20, 20))).astype(np.uint8)
        sheet = np.zeros((300, 400), np.uint8)
        sheet[90:250, 200:360] = big
        path = tmp_path / f"{number}.png"
        Image.fromarray(sheet if ground == 0 else 255 - sheet).save(path)
        open_page(browser, pages["digits"])
        browser.find_element(By.ID, "file").send_keys(str(path))
        WebDriverWait(browser, 10).until(lambda b: text(b, "class") != "Draw something")
        answers.append(text(browser, "class"))
    assert sum(answer == str(k) for answer, k in zip(answers, classes[:5], strict=True)) >= 4
    assert browser.get_log("browser") == []


def test_a_file_that_is_no_image_is_said_so(browser, pages, tmp_path) -> None:
    path = tmp_path / "no.png"
    path.write_bytes(b"no image")
    open_page(browser, pages["colour"])
    browser.find_element(By.ID, "file").send_keys(str(path))
    WebDriverWait(browser, 10).until(lambda b: "no image" in text(b, "note"))


def test_sliders_and_the_row_agree(browser, pages) -> None:
    open_page(browser, pages["table"])
    row = browser.find_element(By.ID, "row")
    assert row.get_property("value") == "0.001, 50, -2000000"
    slider = browser.find_elements(By.CSS_SELECTOR, "#sliders input[type=range]")[1]
    assert (slider.get_property("min"), slider.get_property("max")) == ("29", "71")
    browser.execute_script("arguments[0].value = 60; arguments[0].dispatchEvent(new Event('input'))", slider)
    assert row.get_property("value") == "0.001, 60, -2000000"
    row.send_keys(Keys.CONTROL + "a", Keys.DELETE)
    assert "A sample has 3 numbers, got 0" in text(browser, "note")
    row.send_keys("0.002;40 -1e6")
    assert text(browser, "note") == ""
    values = [
        field.get_property("value") for field in browser.find_elements(By.CSS_SELECTOR, "#sliders input[type=number]")
    ]
    assert values == ["0.002", "40", "-1000000"]


def test_words_of_users_do_not_run(browser, pages, tmp_path) -> None:
    names = ("</script><script>alert(1)</script>", "<b>bold</b>", "<!--")
    model = Trained(network((5, 3)), Inputs.real(), names, features=(*names, "a", "b"))
    (path,) = to_html(model, tmp_path / "<i>x.html")
    open_page(browser, path)
    assert browser.get_log("browser") == []
    names_shown = [node.text for node in browser.find_elements(By.CSS_SELECTOR, "#bars .name")]
    assert names_shown == list(names)
    assert browser.find_element(By.TAG_NAME, "h1").text == "<i>x"


def test_framing_is_found_in_the_images(digits) -> None:
    found = framing(digits[1].reshape(-1, 8, 8), 16)
    assert (found.size, found.dark) == (8, True)
    random = np.random.default_rng(0)
    images = np.full((200, 28, 28), 255, np.uint8)
    for image, wide in zip(images, random.integers(8, 15, 200), strict=True):
        left = 14 - wide // 2
        image[4:24, left : left + wide] = 20
    light = framing(images, 255)
    assert (light.size, light.centre, light.dark) == (20, "box", False)
