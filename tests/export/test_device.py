"""8 and 9 are learnt on an emulated Cortex-M4 without forgetting 0 to 7, and the documents say what was found."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Points of accuracy on 0 to 7 that may be lost, and the least accuracy on 8 and 9, of one network. Its accuracies have
#: standard errors of 1 and 6 points: there are 289 and 70 test images.
FORGOTTEN, LEARNT = 3.0, 50.0


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    sys.modules.pop("learn_on_device", None)
    import learn_on_device

    return learn_on_device


@pytest.mark.slow
def test_a_device_learns_8_and_9(script) -> None:
    if script.missing():
        pytest.skip(f"{script.missing()} (gcc-arm-none-eabi, libnewlib-arm-none-eabi, qemu-system-arm)")
    # The script itself asserts that the device and the reference agree in every class and every bit of the state.
    found = script.experiment(0)
    (old, new), (kept, learnt) = found["curve"][0], found["curve"][-1]
    assert new == 0
    assert old - kept < FORGOTTEN
    assert learnt > LEARNT
    assert found["instructions"]["most"] < 200_000


def test_the_page_shows_what_was_measured(script) -> None:
    records = json.loads((ROOT / "docs/data/learning.json").read_text())
    page = (ROOT / "docs/how-to/learn-on-device.md").read_text()
    assert script.summary(records) in page
    assert max(script.forgotten(records)) < FORGOTTEN
    for name in ("ram", "flash"):
        assert f"{records[0][name]:,}" in page
    thousands = {key: round(value / 1000) for key, value in records[0]["instructions"].items()}
    shown = [int(number) for number in re.findall(r"\| (\d+),000 \|", page)]
    assert shown == [thousands["predict"], thousands["right"], thousands["wrong"], thousands["most"]]
