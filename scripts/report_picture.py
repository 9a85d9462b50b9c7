"""The picture of a report in README.md: a run on digits as ``make demo`` does it, its page in a headless Chromium.

python scripts/report_picture.py                       # docs/images/report.png
python scripts/report_picture.py --browser google-chrome
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

import cavity
from cavity.cli import main as command

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "report.png"
WIDTH, HEIGHT = 1100, 1560


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--browser", default="chromium")
    parser.add_argument("--out", type=Path, default=PICTURE)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / "digits"
        command(["train", "--dataset", "digits", "--readout-samples", "5120", "--quiet", "--out", str(run)])
        page = cavity.report.write([cavity.runs.open_run(run)], Path(place) / "report.html")
        how = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={WIDTH},{HEIGHT}"]
        subprocess.run(
            [args.browser, *how, f"--screenshot={args.out.resolve()}", Path(page).resolve().as_uri()], check=True
        )


if __name__ == "__main__":
    main()
