"""Networks in words as cells: what they train, and that an interrupted cell goes on with the same images."""

from __future__ import annotations

import pytest
import torch

from cavity.studies.experiments import Request
from cavity.studies.experiments.convolutions import EXPERIMENT, METHODS
from cavity.studies.experiments.setup import Setup, build, fit, load


class Stopped(Exception):
    pass


def cells():
    return EXPERIMENT.cells(Request("smoke"))


def test_all_methods_train_the_same_network_on_the_same_images():
    setups = [cell.setup for cell in cells()]
    assert [setup.method for setup in setups] == list(METHODS)
    assert len({setup.replace(method="mf") for setup in setups}) == 1
    trainers = [build(setup, load(setup)) for setup in setups]
    mf, rival, bp = (trainer.net for trainer in trainers)
    for net in (mf, bp):
        assert [tuple(layer.mean.shape) for layer in net.layers] == rival.shapes
    assert all(layer.threshold is not None for layer in list(mf.layers)[:-1])


@pytest.mark.parametrize("place", [0, 1], ids=lambda place: METHODS[place])
def test_an_interrupted_cell_goes_on_with_the_same_images(place, tmp_path):
    setup = cells()[place].setup
    data = load(setup)
    pairs = [(data.x_train, data.y_train)], (data.x_test, data.y_test)

    def train(folder, progress):
        trainer = build(setup, data)
        fit(trainer, setup, *pairs, folder, progress, data.image_shape)
        return trainer

    def stop(done, total):
        raise Stopped

    whole = train(tmp_path / "whole", lambda done, total: None)
    with pytest.raises(Stopped):
        train(tmp_path / "cut", stop)
    again = train(tmp_path / "cut", lambda done, total: None)
    for one, other in zip(whole.net.state_dict().values(), again.net.state_dict().values(), strict=True):
        assert torch.equal(one, other)


def test_images_are_changed_as_the_setup_says(tmp_path):
    setup = cells()[1].setup
    data = load(setup)
    seen = []
    for chosen in (setup, setup.replace(augment=None)):
        trainer = build(chosen, data)
        inner = trainer.learn
        trainer.learn = lambda x, y, inner=inner: (seen.append(x.clone()), inner(x, y))[1]
        pairs = [(data.x_train, data.y_train)], (data.x_test, data.y_test)
        fit(trainer, chosen.replace(epochs=1), *pairs, tmp_path / str(len(seen)), lambda *_: None, data.image_shape)
    changed, plain = seen[: len(seen) // 2], seen[len(seen) // 2 :]
    assert not torch.equal(changed[0], plain[0])
    known = {tuple(row) for row in data.x_train.flatten(1).tolist()}
    assert all(tuple(row) in known for row in plain[0].tolist())


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="no network for 'wine': it has those of digits, mnist"):
        EXPERIMENT.cells(Request("smoke", datasets=("wine",)))
    setup = Setup("sgd", "digits", samples=(100, 50), layers="conv:8:3")
    with pytest.raises(ValueError, match="got method 'sgd'"):
        build(setup, load(setup))
