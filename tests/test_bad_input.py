"""Everything that can be wrong with an argument is a ValueError or TypeError that names it and says what it should
be."""

import contextlib
import math

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import cavity
from cavity.cli import main
from cavity.core.algorithms import ALGORITHMS, BP
from cavity.core.channels import ACTIVATIONS
from cavity.core.priors import PRIORS
from cavity.engine import allocation as memory

NAN, INF = math.nan, math.inf


def label_net(**options):
    return cavity.mlp(6, (4,), 1, **options)


def data(samples=5, outputs=1):
    generator = torch.Generator().manual_seed(0)
    return torch.randn((samples, 6), generator=generator), torch.randint(2, (samples,), generator=generator) * 2 - 1


# name of the argument, what it should be, and the settings that are wrong
SETTINGS = [
    ("rho", "> 0", [{"rho": value} for value in (0.0, -1.0, NAN, INF, (1.0, 0.0))]),
    ("rho", "one for each layer", [{"rho": (1.0,)}, {"rho": (1.0, 1.0, 1.0)}]),
    ("damping", r"in \[0, 1\)", [{"damping": value} for value in (-0.1, 1.0, 1.5, NAN, (0.5, 1.0))]),
    ("damping", "one for each layer", [{"damping": (0.5, 0.5, 0.5)}]),
    ("reinforcement", r"in \[0, 1\]", [{"reinforcement": value} for value in (-0.1, 1.1, NAN)]),
    ("reinforcement", "one for each layer", [{"reinforcement": ()}]),
    ("reinforcement_step", r"in \[0, 1\]", [{"reinforcement_step": value} for value in (-0.1, 1.1, NAN)]),
    ("inner_iterations", "positive integer", [{"inner_iterations": value} for value in (0, -1, 1.5, True)]),
    ("tolerance", "> 0", [{"tolerance": value} for value in (0.0, -1e-3, NAN)]),
    (
        "focusing",
        "replicas >= 1",
        [{"focusing": value} for value in ((0.5, 1.0), (3.0, -1.0), (NAN, 1.0), (3.0, INF), (1e308, 1.0))],
    ),
    ("algorithm", "bp, bpi, mf, amp", [{"algorithm": "sgd"}]),
]


@pytest.mark.parametrize(
    ("name", "wanted", "options"),
    [(name, wanted, options) for name, wanted, wrong in SETTINGS for options in wrong],
    ids=str,
)
def test_settings_of_a_trainer(name, wanted, options):
    with pytest.raises(ValueError, match=f"^{name} .*{wanted}"):
        cavity.Trainer(label_net(), **options)


def test_focusing_needs_binary_weights():
    with pytest.raises(ValueError, match=r"focusing .*±1 weights.*gaussian"):
        cavity.Trainer(label_net(weights="gaussian"), focusing=(3.0, 1.0))


def with_value(x, value):
    x = x.clone()
    x[1, 2] = value
    return x


INPUTS = [
    (lambda x: x[:, :5], ValueError, r"x must have shape \(samples, 6\), got \(5, 5\)"),
    (lambda x: x[0], ValueError, r"x must have shape \(samples, 6\), got \(6,\)"),
    (lambda x: x[:0], ValueError, "x must hold at least one sample"),
    (lambda x: x.long(), TypeError, "x must be floating point .*int64"),
    (lambda x: x > 0, TypeError, "x must be floating point .*bool"),
    (lambda x: with_value(x, NAN), ValueError, "x must be finite"),
    (lambda x: with_value(x, INF), ValueError, "x must be finite"),
    (lambda x: with_value(x, 1e16), ValueError, r"x must be within ±2e\+15 .*float32, .* to 1e\+16: standardise it"),
    (lambda x: with_value(x.double(), -1e300), ValueError, r"x must be within ±2e\+15 .* got -1e\+300 to"),
]


@pytest.mark.parametrize(("spoil", "error", "message"), INPUTS)
def test_inputs(spoil, error, message):
    net = label_net()
    x, y = data()
    wrong = spoil(x)
    trainer = cavity.Trainer(net)
    calls = [
        lambda: trainer.step(wrong, y[: len(wrong)]),
        lambda: trainer.fit((wrong, y[: len(wrong)]), epochs=1),
        lambda: trainer.fit((x, y), epochs=1, validation=(wrong, y[: len(wrong)])),
        lambda: net.predict(wrong),
        lambda: net.predict_proba(wrong),
    ]
    for call in calls:
        with pytest.raises(error, match=message):
            call()


def test_images_of_the_wrong_shape():
    net = cavity.Network([cavity.Conv2d((1, 4, 4), 2, 3), "sign", cavity.Dense(8, 1), "label"])
    with pytest.raises(ValueError, match=r"x must have shape \(samples, 1, 4, 4\), got \(2, 1, 5, 4\)"):
        net.predict(torch.zeros(2, 1, 5, 4))


LABELS = [
    ("label", 1, torch.tensor([1, -1, 0]), ValueError, r"y must hold -1 or \+1"),
    ("label", 1, torch.tensor([1.0, -1.0, NAN]), ValueError, r"y must hold -1 or \+1"),
    ("label", 1, torch.tensor([True, False, True]), ValueError, r"y must hold -1 or \+1"),
    ("label", 1, torch.tensor([1, -1]), ValueError, r"y must have shape \(3, 1\) or \(3,\)"),
    ("label", 2, torch.tensor([1, -1, 1]), ValueError, r"y must have shape \(3, 2\)"),
    ("argmax", 4, torch.tensor([0, 1, 4]), ValueError, "y must hold classes 0 to 3"),
    ("argmax", 4, torch.tensor([0, 1, -1]), ValueError, "y must hold classes 0 to 3"),
    ("argmax", 4, torch.tensor([0.0, 1.0, 2.0]), TypeError, "y must hold integer classes"),
    ("argmax", 4, torch.tensor([[0], [1], [2]]), ValueError, r"y must have shape \(3,\)"),
    ("gaussian", 1, torch.tensor([0.0, 1.0, INF]), ValueError, "y must be finite"),
    ("gaussian", 1, torch.tensor([0.0, 1.0, NAN]), ValueError, "y must be finite"),
    ("gaussian", 2, torch.zeros(3, 1), ValueError, r"y must have shape \(3, 2\)"),
]


@pytest.mark.parametrize(("output", "outputs", "y", "error", "message"), LABELS)
def test_labels(output, outputs, y, error, message):
    trainer = cavity.Trainer(cavity.mlp(6, (4,), outputs, output=output))
    x = data(samples=3)[0]
    for call in (lambda: trainer.step(x, y), lambda: trainer.fit((x, y), epochs=1)):
        with pytest.raises(error, match=message):
            call()


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: cavity.Layer(cavity.Dense(6, 4), mask=torch.ones(6, 4).bool()), ValueError, r"mask .*\(4, 6\)"),
        (lambda: cavity.Layer(cavity.Dense(6, 4, bias=True), mask=torch.ones(4, 6).bool()), ValueError, r"\(4, 7\)"),
        (lambda: cavity.Layer(cavity.Dense(6, 4), mask=torch.ones(4, 6)), TypeError, "mask must be boolean"),
        (lambda: cavity.Layer(cavity.Dense(6, 4), density=0.0), ValueError, r"density must be in \(0, 1\]"),
        (lambda: cavity.Layer(cavity.Dense(6, 4), density=1.5), ValueError, r"density must be in \(0, 1\]"),
        (
            lambda: cavity.Layer(cavity.Dense(6, 4), density=0.5, mask=torch.ones(4, 6).bool()),
            ValueError,
            "mask or density, not both",
        ),
        (lambda: cavity.Layer(cavity.Dense(6, 4), "trinary"), ValueError, "weights .*binary, gaussian, ternary"),
        (lambda: label_net(init=-1.0), ValueError, r"init must be 0 or from 1e-15 to 1e\+15"),
        (lambda: label_net(init=NAN), ValueError, r"init must be 0 or from 1e-15 to 1e\+15"),
        (lambda: label_net(weights="gaussian", init=0.0), ValueError, "init must be > 0 for gaussian"),
        (lambda: label_net(activation="tanh"), ValueError, "activation .*sign, relu, identity"),
        (lambda: label_net(output="softmax"), ValueError, "output .*label, argmax, gaussian"),
        (lambda: cavity.Network([cavity.Dense(3, 1), cavity.Sign()]), TypeError, "output must be an Output"),
        (lambda: cavity.Network([cavity.Dense(3, 1)]), ValueError, "chain must alternate"),
        (lambda: cavity.Network(["sign", "label"]), TypeError, r"chain\[0\] must be a Layer or a coupling"),
        (
            lambda: cavity.Network([cavity.Dense(3, 2), cavity.Label(), cavity.Dense(2, 1), "label"]),
            TypeError,
            "activation must be an Activation",
        ),
        (
            lambda: cavity.Network([cavity.Dense(3, 2), "sign", cavity.Dense(4, 1), "label"]),
            ValueError,
            r"layer 1 takes inputs of shape \(4,\), but layer 0 gives \(2,\)",
        ),
        (lambda: cavity.Network([cavity.Conv2d((1, 3, 3), 1, 3), "label"]), ValueError, "last coupling must be Dense"),
        (lambda: cavity.mlp(0, (4,), 1), ValueError, "inputs must be a positive integer"),
        (lambda: cavity.mlp(3, (4.0,), 1), ValueError, r"hidden\[0\] must be a positive integer, got 4.0"),
        (lambda: cavity.mlp(3, 4, 1), TypeError, r"hidden must be a sequence of widths such as \(501,\), got 4"),
        (
            lambda: cavity.mlp(3, (4,), 1, weights=cavity.Gaussian),
            TypeError,
            "weights must be one of .*, or such an object",
        ),
        (lambda: cavity.Trainer(cavity.mlp(3, (4,), 1), None), TypeError, "algorithm must be one of bp, .* got None"),
        (lambda: cavity.Conv2d((1, 3, 3), 1, 5), ValueError, "kernel .* does not fit into image_shape"),
        (lambda: cavity.Conv2d((1, 3, 3), 1, 2, stride=0), ValueError, "stride must be a positive integer"),
        (lambda: cavity.Conv2d((1, 3, 3), 1, 2, padding=-1), ValueError, "padding must be >= 0"),
        (lambda: cavity.Conv2d((3, 3), 1, 2), ValueError, r"image_shape must be \(channels, height, width\)"),
        (lambda: cavity.Conv2d((1, 3, 3), 1, (2, 2, 2)), ValueError, "kernel must be one integer or two"),
        (lambda: cavity.ArgMax("softest"), ValueError, "method must be one of quadrature, exact, pairwise, sampled"),
        (lambda: cavity.Sign(noise=-1.0), ValueError, "noise must be a finite variance >= 0"),
        (lambda: cavity.Label(noise=NAN), ValueError, "noise must be a finite variance >= 0"),
        (lambda: cavity.GaussianOutput(noise=0.0), ValueError, "noise must be a finite variance > 0"),
        (lambda: cavity.Atoms([1.0]), ValueError, "values must be two or more"),
        (lambda: cavity.Atoms([1.0, 1.0]), ValueError, "values must be two or more different"),
        (lambda: cavity.Atoms([1.0, 2.0], base=[1.0, 0.0]), ValueError, "base must hold one positive weight"),
    ],
)
def test_parts_of_a_network(build, error, message):
    with pytest.raises(error, match=message):
        build()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "epochs must be a positive integer"),
        ({"epochs": 1.5}, "epochs must be a positive integer"),
        ({"epochs": 1, "batch_size": 0}, "batch_size must be a positive integer or None"),
        ({"epochs": 1, "batch_size": 2.0}, "batch_size must be a positive integer or None"),
        ({"epochs": 1, "batch_size": True}, "batch_size must be a positive integer or None"),
    ],
)
def test_settings_of_fit(options, message):
    with pytest.raises(ValueError, match=message):
        cavity.Trainer(label_net()).fit(data(), **options)


def test_a_batch_size_may_be_numpys():
    trainer = cavity.Trainer(label_net(), "mf")
    trainer.fit(data(samples=8), epochs=1, batch_size=np.int64(2))
    assert trainer.steps == 4


def test_training_data_that_are_all_but_zero():
    x, y = data()
    for scale in (1e-7, 1e-30):
        with pytest.raises(ValueError, match=r"x must not be all below 1e-06, .* is .*: standardise it"):
            cavity.Trainer(label_net()).fit((scale * x.sign(), y), epochs=1)
    cavity.Trainer(label_net(), "mf").fit((0 * x, y), epochs=1)


def test_half_precision_is_refused():
    x, y = data()
    for net in (label_net().bfloat16(), label_net().half()):
        for call in (lambda net=net: cavity.Trainer(net).step(x, y), lambda net=net: net.predict_proba(x)):
            with pytest.raises(TypeError, match=r"needs a network in float32 or float64, got torch\..*: use net.float"):
                call()
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(TypeError, match=r"leave torch\.autocast"):
        cavity.Trainer(label_net()).step(x, y)


def test_a_loader_without_batches():
    loader = DataLoader(TensorDataset(*data(samples=3)), batch_size=4, drop_last=True)
    with pytest.raises(ValueError, match="train gave no mini-batch"):
        cavity.Trainer(label_net()).fit(loader, epochs=1)


def test_predictions_that_do_not_exist():
    x = data()[0]
    with pytest.raises(ValueError, match="method must be 'point' or 'bayes', got 'mean'"):
        label_net().predict(x, method="mean")
    with pytest.raises(ValueError, match="Gaussian output has no classes"):
        cavity.mlp(6, (), 1, output="gaussian").predict_proba(x)
    with pytest.raises(ValueError, match="one label output, the network has 2"):
        cavity.mlp(6, (), 2, output="label").predict_proba(x)


def snapshot(net):
    return {name: tensor.clone() for name, tensor in net.state_dict().items()}


@pytest.mark.parametrize("weights", PRIORS)
def test_a_field_that_overflows_stops_training_and_leaves_the_last_good_state(weights):
    """ρ = 10³⁰ multiplies the fields until single precision ends."""
    net = label_net(weights=weights)
    trainer = cavity.Trainer(net, "bp", rho=(1.0, 1e30))
    x, y = data()
    states = [snapshot(net)]

    def train():
        for _ in range(5):
            trainer.step(x, y)
            states.append(snapshot(net))

    with pytest.raises(cavity.NonFiniteField, match=r"layer 1 .* in step [2-5];"):
        train()
    assert trainer.steps == len(states) - 1 >= 1
    assert all(torch.equal(tensor, states[-1][name]) for name, tensor in snapshot(net).items())
    assert all(tensor.isfinite().all() for tensor in states[-1].values())
    cavity.Trainer(net, "bp", rho=1e-6).step(x, y)


@pytest.mark.parametrize("scale", [1e-30, 1e-10, 1e10, 1e15])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_inputs_of_any_size_never_leave_a_broken_state(algorithm, activation, scale):
    net = label_net(activation=activation)
    trainer = cavity.Trainer(net, algorithm, inner_iterations=2)
    x, y = data()
    with contextlib.suppress(cavity.NonFiniteField):
        for _ in range(3):
            trainer.step(scale * x.sign(), y)
    assert all(tensor.isfinite().all() for tensor in snapshot(net).values())


def test_bp_refuses_what_cannot_fit(monkeypatch):
    net = label_net()
    x, y = data(samples=100)
    # Three numbers for each edge and sample: 3 · 100 · (4·6 + 1·4) of 4 bytes.
    needed = 3 * 100 * 28 * 4
    before = snapshot(net)
    monkeypatch.setattr(memory, "available_bytes", lambda device: needed - 1)
    with pytest.raises(MemoryError, match=r"bp with 2 inner iterations on 100 samples needs .* GiB.*smaller batch"):
        cavity.Trainer(net, "bp", inner_iterations=2).step(x, y)
    assert all(torch.equal(tensor, before[name]) for name, tensor in snapshot(net).items())
    for algorithm, iterations in (("bp", 1), ("bpi", 2), ("amp", 2), ("mf", 2)):
        cavity.Trainer(net, algorithm, inner_iterations=iterations).step(x, y)
    monkeypatch.setattr(memory, "available_bytes", lambda device: needed)
    cavity.Trainer(net, "bp", inner_iterations=2).step(x, y)


def test_the_size_that_bp_names():
    couplings = [cavity.Conv2d((3, 32, 32), 64, 3, padding=1, bias=True), cavity.Dense(65536, 10)]
    edges = 64 * 28 * 32 * 32 + 10 * 65536
    assert BP().numbers_held(couplings, 1000, 2) == 3 * 1000 * edges
    with pytest.raises(MemoryError, match=r"a message needs 1024\.0 GiB, but cpu has \d"):
        memory.require(2**40, torch.device("cpu"), "a message", "use less")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--threads", "100000"), "threads must be at most 1024, got 100000"),
        (("--hidden", "1000000,1000000"), "a network of 1e+12 weights, dense:1000000,dense:1000000, needs"),
        (("--hidden", "1000000,1000000"), "use narrower layers"),
        (("--hidden", "1" + 20 * "0"), "must be a whole number up to 1048576, got '100000000000000000000'"),
        (("--hidden", ",".join("1" * 257)), "layers: there are 257, expected at most 256"),
        (("--device", "meta"), "device 'meta' cannot be used here: it holds shapes and no numbers"),
        (("--focusing", "1e308,1e308"), "focusing must be (replicas >= 1, gamma >= 0), both at most 1e+06"),
        (("--density", "1e-9"), "density must leave weights in every layer, 1e-09 of 704 leaves none in layer 0"),
    ],
)
def test_options_out_of_all_proportion(words, message, tmp_path, capsys):
    common = ("train", "--dataset", "digits", "--hidden", "11", "--epochs", "1", "--out", str(tmp_path / "run"))
    assert main([*common, *words]) == 2
    said = capsys.readouterr().err
    assert said.startswith("cavity: ")
    assert message in said
    assert not (tmp_path / "run").exists()
