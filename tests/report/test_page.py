"""The page as a document."""

from __future__ import annotations

import base64
import hashlib
import re
from html import unescape
from html.parser import HTMLParser

import pytest

from cavity.report.collect import summarize
from cavity.report.page import lead, page, write_page
from report.helpers import HOSTILE, example, layer, outcome, summary

VOID = {"meta", "link", "img", "input"}


class Document(HTMLParser):
    """Checks that tags match, and keeps what the tests ask about."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open, self.tags, self.ids, self.texts, self.links = [], [], [], [], []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append(tag)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [value for name, value in attributes.items() if name in ("src", "href")]
        assert not any(name.startswith("on") for name in attributes)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)


def hostile() -> list:
    """Every word a user can choose is an attack."""
    test = outcome((HOSTILE, "dog"))
    wrong = (example(1, HOSTILE, "dog"),)
    test = type(test)(**{**vars(test), "certain_mistakes": wrong, "least_certain": wrong})
    run = summary(
        HOSTILE,
        data=HOSTILE,
        config=((HOSTILE, HOSTILE),),
        test=test,
        notes=(HOSTILE,),
        layers=(layer(1, name=HOSTILE, kind=HOSTILE), layer(2)),
    )
    return [run, summary("other")]


PAGES = {"one": [summary()], "several": [summary("a"), summary("b", 7)], "hostile": hostile(), "alone": hostile()[:1]}


@pytest.mark.parametrize("runs", PAGES.values(), ids=PAGES)
def test_document_is_well_formed_and_needs_nothing_else(runs):
    document = Document(page(runs))
    assert len(set(document.ids)) == len(document.ids)
    assert {"h1", "nav", "main", "footer", "svg", "figcaption", "table"} <= set(document.tags)
    for link in document.links:
        assert link.startswith(("data:", "#"))
        assert not link.startswith("#") or link[1:] in document.ids
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", page(runs))


@pytest.mark.parametrize("runs", [hostile(), hostile()[:1]], ids=["several", "alone"])
def test_words_of_users_stay_words(runs):
    html = page(runs)
    document = Document(html)
    assert html.count("<script") == 1
    assert "alert(1)</script>" not in html
    assert any("<script>alert(1)" in words for words in document.texts)
    assert "\x07" not in html


def test_the_policy_allows_this_script_only():
    html = unescape(page([summary()]))
    script = re.search(r"<script>(.*?)</script>", html, re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in html
    assert "default-src 'none'" in html


def test_a_page_on_disk_connects_to_nobody_and_a_live_one_to_its_server():
    still, live = unescape(page([summary()])), unescape(page([summary()], live=True))
    assert "connect-src" not in still
    assert "fetch(" not in still
    assert "connect-src 'self'" in live
    assert 'id="live"' in live


def test_the_head_has_what_all_runs_have_in_common():
    common = ("Algorithm", HOSTILE)
    runs = [summary(name, facts=(common, ("Machine", name)), finished=False) for name in ("first", "second")]
    document = Document(page(runs))
    words = [text.replace("\n", "") for text in document.texts]
    assert any("alert(1)" in text for text in words)
    assert words.count("Algorithm") == 1
    assert "unfinished" in words


def test_the_downloads_are_the_numbers_of_the_page():
    (epochs, runs) = (link for link in Document(page([summary("a", 2)])).links if link.startswith("data:text/csv"))
    text = base64.b64decode(epochs.partition(",")[2]).decode("utf-8-sig")
    assert text.splitlines()[1].startswith("a,1,20.0,25.0,")
    assert base64.b64decode(runs.partition(",")[2]).decode("utf-8-sig").startswith("run,data,Test error,")


def test_every_picture_has_a_description():
    images = re.findall(r"<img [^>]*>", page([summary()]))
    assert images
    assert all(re.search(r'alt="[^"]{5,}"', image) for image in images)


def test_the_same_numbers_make_the_same_page():
    assert page([summary()]) == page([summary()])


def test_lead_says_what_was_trained():
    assert lead([summary()]) == "2 layers of binary weights, trained by message passing on pets for 4 epochs."
    assert lead([summary("a"), summary("b")]) == "a and b."


def test_a_page_of_a_trained_network(trained):
    html = page([summarize("digits", trained.config, trained.history, trained.net, trained.dataset)])
    Document(html)
    assert f"{trained.history[-1].test_error:.2f}\u00a0%" in html
    assert "31" in html
    assert len(html) < 400_000


def test_nothing_to_show_is_an_error():
    with pytest.raises(ValueError, match="at least one summary"):
        page([])


def test_writing_replaces_the_old_page_at_once(tmp_path):
    out = tmp_path / "deep" / "report.html"
    assert write_page([summary()], out) == out
    before = out.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="at least one"):
        write_page([], out)
    assert out.read_text(encoding="utf-8") == before
    assert [path.name for path in out.parent.iterdir()] == ["report.html"]
