"""What the command line reaches with every kind of weights and every activation."""

import json

import pytest

from cavity.cli import main
from cavity.core.channels import ACTIVATIONS
from cavity.core.priors import PRIORS

#: Ten classes: chance is at 90 %.
HALF = 50.0


@pytest.mark.slow
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("weights", PRIORS)
def test_digits_are_learnt_without_a_warning(weights, activation, tmp_path, capsys):
    words = ["--weights", weights, "--activation", activation, "--hidden", "51", "--epochs", "3", "--threads", "1"]
    assert main(["train", "--dataset", "digits", "--quiet", "--out", str(tmp_path / "run"), *words]) == 0
    assert "diverged" not in capsys.readouterr().err
    last = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["test_error_bayes"] < HALF
