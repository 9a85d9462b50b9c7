"""How honest the confidence of exported integers is, beside the Bayesian prediction of the same run.

    python scripts/confidence.py runs/fashion

Both NLL are on the run's test set; the temperature is fitted on its training set, and for comparison on the test set
itself, which no export may do.
"""

from __future__ import annotations

import argparse

import numpy as np

from cavity.export import describe, of_run
from cavity.export.on_data import part_of, probabilities
from cavity.packed import PackedNetwork
from cavity.packed.fitting import fit, loss
from cavity.runs import open_run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="a run's folder")
    run = open_run(parser.parse_args().run)
    trained, _ = of_run(run)
    test = part_of(trained, run.load_dataset(), "test")
    net = PackedNetwork(describe(trained))
    scores, sure = net.scores(test.x), trained.confidence
    assert sure is not None
    wanted = np.eye(max(2, scores.shape[1]))[test.y]
    bayes = -float((wanted * np.log(np.maximum(probabilities(trained, test.x), 1e-30))).sum(axis=1).mean())
    found, best = loss(sure, scores, wanted), loss(fit(scores, test.y), scores, wanted)
    right = net.predict(test.x) == test.y
    kept = ~net.reject(test.x)
    print(f"accuracy of the exported network     {trained.accuracy:.2f} %")
    print(f"NLL, Bayesian prediction in floats   {bayes:.4f}")
    print(f"NLL, confidence in integers          {found:.4f}  ({100 * (found / bayes - 1):+.1f} %)")
    print(f"NLL, best temperature for the test   {best:.4f}  ({100 * (best / bayes - 1):+.1f} %)")
    share, good = 100 * kept.mean(), 100 * right[kept].mean()
    print(f"not refused                          {share:.1f} %, of which {good:.2f} % right")


if __name__ == "__main__":
    main()
