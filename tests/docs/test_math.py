"""The site's formulas are typeset by the bundled KaTeX, without a network."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest

from docs.blocks import ROOT, pages

KATEX = ROOT / "docs" / "assets" / "katex"
CODE = re.compile(r"^ *(```+).*?^ *\1$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
FORMULA = re.compile(r"\$\$(?P<display>.+?)\$\$|\$(?P<inline>[^$\n]+)\$", re.DOTALL)
#: Symbols that the theory pages write in LaTeX.
SYMBOL = re.compile("[α-ωΑ-Ω∂√∑∫²½𝒩ℋ𝒦⟨]|\u0302")

SCRIPT = """
const failed = [];
for (const [formula, displayMode] of FORMULAS) {
  try { katex.renderToString(formula, {displayMode, throwOnError: true, strict: "error"}); }
  catch (error) { failed.push(error.message); }
}
document.title = "failed: " + JSON.stringify(failed);
"""


def prose(text: str) -> str:
    return CODE.sub("", text)


def formulas(text: str) -> list[tuple[str, bool]]:

    return [(found["display"] or found["inline"], found["inline"] is None) for found in FORMULA.finditer(prose(text))]


def test_katex_is_complete_and_needs_no_network():
    style = (KATEX / "katex.min.css").read_text()
    fonts = re.findall(r"url\(([^)]+)\)", style)
    assert fonts
    assert all((KATEX / font).is_file() for font in fonts)
    assert "http" not in style
    assert (KATEX / "LICENSE").is_file()
    assert sum(path.stat().st_size for path in KATEX.rglob("*") if path.is_file()) < 700_000


@pytest.mark.parametrize("name", ["theory", "equations"])
def test_every_symbol_of_the_theory_is_typeset(name):
    text = (ROOT / "docs" / f"{name}.md").read_text()
    assert len(formulas(text)) > 40
    assert SYMBOL.findall(FORMULA.sub("", prose(text))) == []


def test_every_formula_can_be_typeset(tmp_path):
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed, so no formula can be rendered")
    found = [formula for page in pages() for formula in formulas(page.read_text())]
    page = tmp_path / "formulas.html"
    page.write_text(
        f'<meta charset="utf-8"><title>not run</title><script src="{(KATEX / "katex.min.js").as_uri()}"></script>'
        f"<script>const FORMULAS = {json.dumps(found)};{SCRIPT}</script>"
    )
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    flags += ["--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update"]
    command = [chromium, *flags, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert "<title>failed: []</title>" in shown
