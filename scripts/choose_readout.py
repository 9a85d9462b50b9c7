"""How many samples the readout of ``make demo`` should count: five folds of the training set of digits, no test sample.

    python scripts/choose_readout.py

For each number, errors, NLL and ECE of the predictions for the fold that was held out, of all folds together. Beside
the ECE is what it would be on average if the probabilities were exactly right: with so few samples it is not 0.
"""

from __future__ import annotations

import torch
from sklearn.model_selection import StratifiedKFold
from torch import Tensor

import cavity
from cavity.analysis.calibration import expected_calibration_error, negative_log_likelihood
from cavity.training.recipes import recipe_for

COUNTS = (640, 1280, 2560, 5120, 10240, 20480)
#: Draws of labels from the probabilities themselves.
DRAWS = 50


def held_out(x: Tensor, y: Tensor, count: float) -> tuple[Tensor, Tensor]:
    """Probabilities (samples, 10) and whether the most probable weights are wrong, each from the other folds."""
    recipe = recipe_for("digits")
    probabilities, wrong = torch.empty(len(x), 10), torch.empty(len(x))
    for seed, (rest, fold) in enumerate(StratifiedKFold(5, shuffle=True, random_state=0).split(x, y)):
        net = cavity.mlp(x.shape[1], recipe.hidden, 10, seed=seed)
        trainer = cavity.Trainer(net, recipe.algorithm, readout_samples=count, seed=seed)
        trainer.fit(
            (x[rest], y[rest]), epochs=recipe.epochs, batch_size=recipe.usual_batch, evaluate_every=recipe.epochs
        )
        probabilities[fold] = net.predict_proba(x[fold])
        wrong[fold] = (net.predict(x[fold]) != y[fold]).float()
    return probabilities, wrong


def unavoidable(probabilities: Tensor) -> float:
    """The mean ECE of labels that are drawn from the probabilities."""
    generator = torch.Generator().manual_seed(0)
    drawn = (torch.multinomial(probabilities, 1, generator=generator)[:, 0] for _ in range(DRAWS))
    return float(torch.stack([expected_calibration_error(probabilities, labels) for labels in drawn]).mean())


def main() -> None:
    data = cavity.data.load("digits")
    print("samples  point-wise  Bayesian     NLL     ECE  unavoidable")
    for count in COUNTS:
        p, wrong = held_out(data.x_train, data.y_train, count)
        bayes = float((p.argmax(dim=1) != data.y_train).float().mean())
        nll, ece = negative_log_likelihood(p, data.y_train), expected_calibration_error(p, data.y_train)
        errors = f"{100 * float(wrong.mean()):>8.2f} %  {100 * bayes:>6.2f} %"
        print(f"{count:>7}  {errors}  {float(nll):.4f}  {100 * float(ece):.2f} %  {100 * unavoidable(p):>9.2f} %")


if __name__ == "__main__":
    main()
