"""What rounding Gaussian weights to 8 bits costs: test accuracy of runs with their own weights, and as exported.

    python scripts/int8_loss.py runs/gaussian-*

Both are of the most probable weights. Exports round each row to whole numbers from -127 to 127
(``cavity.export.chain``).
"""

from __future__ import annotations

import argparse

import numpy as np

from cavity.export import Trained, describe
from cavity.export.on_data import part_of
from cavity.packed import PackedNetwork
from cavity.runs import open_run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", help="runs with Gaussian weights and sign units")
    rows = []
    for path in parser.parse_args().runs:
        run = open_run(path)
        trained, data = Trained.of(run), run.load_dataset()
        test = part_of(trained, data, "test")
        classes = trained.net.predict(data.x_test).numpy()
        rounded = PackedNetwork(describe(trained)).predict(test.x)
        right = np.asarray(test.y)
        row = [100 * (guess == right).mean() for guess in (classes, rounded)] + [100 * (classes != rounded).mean()]
        rows.append(row)
        print(f"{path}: {row[0]:.2f} %, in 8 bits {row[1]:.2f} %; {row[2]:.2f} % of the classes differ")
    own, rounded, differ = np.mean(rows, axis=0)
    print(f"mean: {own:.2f} %, in 8 bits {rounded:.2f} % ({rounded - own:+.2f}); {differ:.2f} % of the classes differ")


if __name__ == "__main__":
    main()
