"""The oracle is checked against defining integrals, enumeration, and equations written out a second time."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, ndtr

from cavity.core.algorithms import ALGORITHMS
from cavity.core.priors import PRIORS

from . import channels
from .message_passing import Layer, conv_edges, dense_edges, run_minibatch

POINTS = [(0.0, 0.0, 0.3, 1.2), (0.7, 0.4, -0.5, 0.8), (-1.3, 0.9, 1.1, 2.5), (2.0, -0.2, -1.5, 1.7)]
WEIGHT_NAMES = ("m", "sigma", "H", "G", "field", "precision", "mean", "variance")
COMPARED = ("omega", "V", "xhat", "Delta", "g", "Gamma", "B", "A", "H", "G", "field", "mean", "variance")


def integral(function, omega, V):
    """The integral of function(z) N(z; omega, V), split at the kinks at 0."""
    s = math.sqrt(V)

    def weighted(z):
        return function(z) * math.exp(-0.5 * ((z - omega) / s) ** 2) / (s * math.sqrt(2 * math.pi))

    low, high = min(-14 * s + omega, -1.0), max(14 * s + omega, 1.0)
    edges = sorted({low, high, 0.0, omega, omega - 3 * s, omega + 3 * s})
    return sum(quad(weighted, a, b, epsabs=1e-15, epsrel=1e-13)[0] for a, b in itertools.pairwise(edges))


def derivatives(function, at):
    """First and second derivative by central differences, extrapolated three times."""
    steps = [0.08 / 2**j for j in range(4)]
    first = [(function(at + h) - function(at - h)) / (2 * h) for h in steps]
    second = [(function(at + h) - 2 * function(at) + function(at - h)) / h**2 for h in steps]
    for order in (4, 16, 64):
        first, second = (
            [(order * b - a) / (order - 1) for a, b in itertools.pairwise(column)] for column in (first, second)
        )
    return first[0], second[0]


@pytest.mark.parametrize("spec", ["sign", "relu", "identity", ("noisy_sign", 0.6)])
@pytest.mark.parametrize("point", POINTS)
def test_activation_against_its_integral(spec, point):
    B, A, omega, V = point
    kernels = {
        "sign": lambda z: [(1.0, float(z >= 0)), (-1.0, float(z < 0))],
        "relu": lambda z: [(max(0.0, z), 1.0)],
        "identity": lambda z: [(z, 1.0)],
        "noisy_sign": lambda z: [(s, float(ndtr(s * z / math.sqrt(0.6)))) for s in (1.0, -1.0)],
    }
    kernel = kernels[spec if isinstance(spec, str) else spec[0]]

    def expectation(function):
        return integral(
            lambda z: sum(p * math.exp(B * x - 0.5 * A * x * x) * function(x, z) for x, p in kernel(z)),
            omega,
            V,
        )

    norm = expectation(lambda x, z: 1.0)
    x1, x2, z1, z2 = (
        expectation(f) / norm for f in (lambda x, z: x, lambda x, z: x * x, lambda x, z: z, lambda x, z: z * z)
    )
    expected = (x1, x2 - x1**2, (z1 - omega) / V, (1 - (z2 - z1**2) / V) / V)
    np.testing.assert_allclose(channels.activation(spec)(*point), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", ["relu", "identity"])
def test_a_floor_keeps_the_integral_finite(name):
    unit = channels.activation(name)
    assert unit(0.3, -5.0, 0.2, 1.5) == unit(0.3, -0.6, 0.2, 1.5)


@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_label_and_gaussian_against_differences(y):
    omega, V, noise = 0.4, 1.3, 0.7
    cases = [
        (channels.label(y, omega, V), lambda w: math.log(integral(lambda z: float(y * z >= 0), w, V))),
        (
            channels.gaussian(y, omega, V, noise),
            lambda w: math.log(integral(lambda z: math.exp(-0.5 * (y - z) ** 2 / noise), w, V)),
        ),
    ]
    for (g, Gamma), free_energy in cases:
        first, second = derivatives(free_energy, omega)
        np.testing.assert_allclose([g, -Gamma], [first, second], rtol=1e-8)


ARGMAX_OMEGA = np.array([0.3, -0.8, 1.1, 0.2])
ARGMAX_V = np.array([1.2, 0.5, 2.0, 0.9])
EPSILON = np.array([0.4, -1.1, 0.9])


def argmax_value(method, star, omega):
    others = [k for k in range(4) if k != star]
    V = ARGMAX_V
    if method == "pairwise":
        return sum(math.log(ndtr((omega[star] - omega[k]) / math.sqrt(V[k] + V[star]))) for k in others)
    if method == "sampled":
        z = omega[star] + EPSILON * math.sqrt(V[star])
        return sum(np.log(ndtr((z - omega[k]) / math.sqrt(V[k]))).mean() for k in others)
    return math.log(
        integral(
            lambda z: math.prod(float(ndtr((z - omega[k]) / math.sqrt(V[k]))) for k in others),
            omega[star],
            V[star],
        )
    )


@pytest.mark.parametrize("star", range(4))
@pytest.mark.parametrize("method", ["pairwise", "sampled", "exact"])
def test_argmax_against_differences(method, star):
    extra = (EPSILON,) if method == "sampled" else ()
    g, Gamma = getattr(channels, f"argmax_{method}")(star, ARGMAX_OMEGA, ARGMAX_V, *extra)
    for k in range(4):

        def value(w, k=k):
            return argmax_value(method, star, np.where(np.arange(4) == k, w, ARGMAX_OMEGA))

        first, second = derivatives(value, ARGMAX_OMEGA[k])
        np.testing.assert_allclose([g[k], -Gamma[k]], [first, second], rtol=1e-7)


@pytest.mark.parametrize("V", [(1.0, 1.0, 1.0), (4.0, 1e-3, 0.5), (1e-3, 3.0, 2.0)])
def test_exact_argmax_is_invariant_under_a_common_shift(V):
    g, _ = channels.argmax_exact(1, np.array([0.8, -0.6, 0.5]), np.array(V))
    assert abs(g.sum()) < 1e-11 * abs(g).max()


def test_exact_argmax_of_two_classes_is_the_pairwise_one():
    arguments = (0, np.array([-1.2, 0.7]), np.array([0.4, 2.2]))
    for exact, pair in zip(channels.argmax_exact(*arguments), channels.argmax_pairwise(*arguments), strict=True):
        np.testing.assert_allclose(exact, pair, rtol=1e-11)


@pytest.mark.parametrize("prior", PRIORS)
def test_weight_moments_against_differences(prior):
    field, precision = 0.7, 1.4

    def log_z(h):
        if prior == "gaussian":
            return math.log(quad(lambda w: math.exp(h * w - 0.5 * precision * w * w), -20, 20, epsabs=1e-14)[0])
        atoms = (-1, 1) if prior == "binary" else (-1, 0, 1)
        return math.log(sum(math.exp(h * w - 0.5 * precision * w * w) for w in atoms))

    mean, variance = derivatives(log_z, field)
    np.testing.assert_allclose(channels.weight_moments(prior, field, precision), (mean, variance), rtol=1e-8)


def test_focusing_limits():
    assert channels.focused(0.4, 1.0, 0.9) == 0.4
    assert channels.focused(0.4, 5.0, 12.0) == pytest.approx(5 * 0.4, rel=1e-6)


# ----------------------------------------------------------------------------------------- whole networks


def make_layer(rng, graph, prior="binary", **options):
    shape = graph.alive.shape
    field = np.where(graph.alive, 0.6 * rng.standard_normal(shape), 0.0)
    precision = np.where(graph.alive, rng.uniform(1.0, 3.0, shape), 0.0)
    moments = np.array([channels.weight_moments(prior, h, p) for h, p in zip(field.flat, precision.flat, strict=True)])
    mean, variance = (np.where(graph.alive, column.reshape(shape), 0.0) for column in moments.T)
    return Layer(graph, prior, field, precision, mean, variance, **options)


def assert_same(left, right, names=COMPARED):
    for one, other in zip(left, right, strict=True):
        for name in names:
            for a, b in zip(one[name], other[name], strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13, err_msg=name)


def small_problem(prior="binary", activation="sign", seed=0, **options):
    rng = np.random.default_rng(seed)
    graphs = dense_edges(5, 6, bias=True), dense_edges(3, 5, mask=rng.random((3, 5)) < 0.8)
    layers = [make_layer(rng, graph, prior, **options) for graph in graphs]
    return layers, [activation], rng.standard_normal((4, 6)), rng.integers(0, 3, 4)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("output", ["label", "argmax-pairwise"])
def test_bp_is_bpi_in_the_first_iteration_only(prior, output):
    layers, activations, x, classes = small_problem(prior, rho=0.95, damping=0.3, reinforcement=0.2)
    y = classes if output.startswith("argmax") else np.sign(x[:, :3])
    bp, bpi = (run_minibatch(layers, activations, output, x, y, name, 2) for name in ("bp", "bpi"))
    assert_same(bp[:1], bpi[:1])
    assert abs(bp[1]["omega"][1] - bpi[1]["omega"][1]).max() > 1e-4


def all_but_one(terms, axis):
    """Sums over an axis that leave out each entry in turn."""
    size = terms.shape[axis]
    return np.stack([np.delete(terms, j, axis).sum(axis) for j in range(size)], axis)


@pytest.mark.parametrize("output", ["label", "argmax-pairwise"])
def test_bp_is_the_printed_equations(output):
    layers, activations, x, classes = small_problem(rho=0.9, damping=0.3, reinforcement=0.2)
    y = classes if output.startswith("argmax") else np.sign(x[:, :3])
    history = run_minibatch(layers, activations, output, x, y, "bp", 3)
    top, unit = layers[1], np.vectorize(channels.sign)
    for old, now in itertools.pairwise(history):
        before, after = ({name: values[1] for name, values in h.items()} for h in (old, now))
        omega, V = (now[name][0] for name in ("omega", "V"))
        edge = np.broadcast_to(top.graph.alive, after["m_cavity"].shape)
        np.testing.assert_allclose(after["xhat"], unit(before["B"], before["A"], omega, V)[0], rtol=1e-11)
        xhat = unit(before["B_cavity"], before["A"][:, None], omega[:, None], V[:, None])[0]
        mean = 0.3 * before["m_cavity"] + 0.7 * np.tanh(before["field"] - before["H"] + before["H_cavity"])
        np.testing.assert_allclose(after["xhat_cavity"][edge], xhat[edge], rtol=1e-11)
        np.testing.assert_allclose(after["m_cavity"][edge], mean[edge], rtol=1e-11)
        np.testing.assert_allclose(after["field"], 0.9 * top.field + after["H"] + 0.2 * before["field"], rtol=1e-11)
    for messages in history:
        m, s, x1, d, g, gamma, m_, x_, g_ = (
            messages[name][1]
            for name in ("m", "sigma", "xhat", "Delta", "g", "Gamma", "m_cavity", "xhat_cavity", "g_cavity")
        )
        expected = {
            "V": d @ (m**2).T + x1**2 @ s.T + d @ s.T,
            "omega": (m_ * x_).sum(2),
            "A": gamma @ (m**2 + s) - g**2 @ s,
            "G": np.where(top.graph.alive, gamma.T @ (x1**2 + d) - (g**2).T @ d, 0.0),
        }
        others = {"B_cavity": (m_ * g_, 1), "H_cavity": (x_ * g_, 0)}
        if output == "label":
            others["omega_cavity"] = (m_ * x_, 2)
            slopes = np.vectorize(channels.label)(
                y[:, :, None], messages["omega_cavity"][1], messages["V"][1][:, :, None]
            )
            np.testing.assert_allclose(g_, np.where(top.graph.alive, slopes[0], 0.0), rtol=1e-11)
        else:
            np.testing.assert_array_equal(g_, np.where(top.graph.alive, g[:, :, None], 0.0))
        for name, (terms, axis) in others.items():
            expected[name] = np.where(top.graph.alive, all_but_one(terms, axis), 0.0)
        for name, value in expected.items():
            np.testing.assert_allclose(messages[name][1], value, rtol=1e-11, atol=1e-14, err_msg=name)


@pytest.mark.parametrize("output", ["label", "argmax-exact"])
def test_amp_is_the_expanded_equations(output):
    layers, activations, x, classes = small_problem("ternary", "relu", damping=0.2)
    y = classes if output.startswith("argmax") else np.sign(x[:, :3])
    history = run_minibatch(layers, activations, output, x, y, "amp", 3)
    for old, now in itertools.pairwise(history):
        depth = 1
        m, s, x1, d, g, gamma = (now[name][depth] for name in ("m", "sigma", "xhat", "Delta", "g", "Gamma"))
        m_, x_, g_ = (old[name][depth] for name in ("m", "xhat", "g"))
        onsager = 0.0 if output.startswith("argmax") else 1.0
        omega = x1 @ m.T - g_ * ((x1 * x_) @ s.T) - g_ * (d @ (m * m_).T) + g_**2 * ((x_ * d) @ (s * m_).T)
        B = g @ m - x_ * ((g_ * g) @ s)
        B += onsager * (x1 * (gamma @ m**2) - x1 * x_ * ((g_ * gamma) @ (s * m)))
        H = g.T @ x1 - m_ * ((g_ * g).T @ d)
        H += onsager * (m * (gamma.T @ x1**2) - m * m_ * ((g_ * gamma).T @ (d * x1)))
        np.testing.assert_allclose(now["omega"][depth], omega, rtol=1e-11)
        np.testing.assert_allclose(now["B"][depth], B, rtol=1e-11)
        np.testing.assert_allclose(now["H"][depth], np.where(layers[1].graph.alive, H, 0.0), rtol=1e-11)


def test_amp_in_the_first_iteration_is_first_order_bp():
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((5, 8)), rng.choice([-1.0, 1.0], (5, 1))
    layer = make_layer(rng, dense_edges(1, 8))
    worst = []
    for scale in (0.1, 0.05, 0.025):
        scaled = replace(layer, mean=layer.mean * scale)
        amp, bp = (run_minibatch([scaled], [], "label", x, y, name, 1)[0]["H"][0] for name in ("amp", "bp"))
        worst.append(abs(amp - bp).max())
    assert worst[0] / worst[1] == pytest.approx(4, abs=0.5)
    assert worst[1] / worst[2] == pytest.approx(4, abs=0.25)


def test_bp_field_on_a_weight_is_the_slope_of_its_factor():
    """One sample, one unit, all but one weight pinned: the factor is a function of the last weight alone."""
    weights, x, noise, prior_field = np.array([1.0, -1.0, 0.0]), np.array([[0.7, 1.2, -0.9]]), 0.8, 0.35
    mean = np.array([[1.0, -1.0, math.tanh(prior_field)]])
    layer = Layer(
        dense_edges(1, 3),
        "binary",
        np.array([[20.0, -20.0, prior_field]]),
        np.zeros((1, 3)),
        mean,
        1 - mean**2,
    )
    # Relaxed BP takes the factor's slope where the weight's own contribution is removed, w = 0.
    history = run_minibatch([layer], [], ("noisy_label", noise), x, [[1.0]], "bp", 1)
    V = noise + x[0, 2] ** 2 * (1 - mean[0, 2] ** 2)
    slope, _ = derivatives(lambda w: math.log(ndtr((x[0, :2] @ weights[:2] + w * x[0, 2]) / math.sqrt(V))), 0.0)
    np.testing.assert_allclose(history[0]["H"][0][0, 2], slope, rtol=1e-8)
    up = (1 + history[0]["mean"][0][0, 2]) / 2
    assert up == pytest.approx(float(expit(2 * (prior_field + slope))), rel=1e-8)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_bias_is_a_column_of_ones(algorithm):
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((3, 4)), rng.choice([-1.0, 1.0], (3, 2))
    with_bias = make_layer(rng, dense_edges(2, 4, bias=True), "gaussian")
    as_input = replace(with_bias, graph=dense_edges(2, 5))
    ones = np.concatenate([x, np.ones((3, 1))], axis=1)
    names = ("omega", "V", "H", "G", "field", "precision", "mean", "variance")
    assert_same(
        run_minibatch([with_bias], [], "label", x, y, algorithm, 2),
        run_minibatch([as_input], [], "label", ones, y, algorithm, 2),
        names,
    )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_masked_weight_is_an_absent_one(algorithm):
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((3, 5)), rng.standard_normal((3, 2))
    keep = [0, 2, 3]
    mask = np.isin(np.arange(5), keep)[None, :].repeat(2, axis=0)
    masked = make_layer(rng, dense_edges(2, 5, mask=mask), "ternary", damping=0.4)
    small = replace(
        masked,
        graph=dense_edges(2, 3),
        **{name: getattr(masked, name)[:, keep] for name in ("field", "precision", "mean", "variance")},
    )
    long = run_minibatch([masked], [], ("gaussian", 0.5), x, y, algorithm, 2)
    short = run_minibatch([small], [], ("gaussian", 0.5), x[:, keep], y, algorithm, 2)
    for one, other in zip(long, short, strict=True):
        np.testing.assert_allclose(one["omega"][0], other["omega"][0], rtol=1e-12)
        for name in ("field", "precision", "mean", "variance"):
            np.testing.assert_allclose(one[name][0][:, keep], other[name][0], rtol=1e-12)
            assert not one[name][0][~mask].any()


def test_convolution_edges_agree_with_a_direct_convolution():
    rng = np.random.default_rng(4)
    graph = conv_edges(2, 4, 5, 3, kernel=(3, 2), stride=(2, 1), padding=1, bias=True)
    image, kernel = rng.standard_normal((2, 4, 5)), rng.standard_normal(graph.alive.shape)
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1)))
    expected = [
        (kernel[c, :-1].reshape(2, 3, 2) * padded[:, top : top + 3, left : left + 2]).sum() + kernel[c, -1]
        for c in range(3)
        for top in range(0, 4, 2)
        for left in range(6)
    ]
    flat = image.ravel()
    found = [
        sum(kernel[e.row, e.column] * (1.0 if e.input is None else flat[e.input]) for e in edges)
        for edges in graph.edges
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_convolution_over_the_input_is_dense_over_more_samples(algorithm):
    """On data, positions of a shared kernel are samples of a dense layer, cavities included."""
    rng = np.random.default_rng(5)
    images, y = rng.standard_normal((2, 6)), rng.choice([-1.0, 1.0], (2, 4))
    conv = make_layer(rng, conv_edges(1, 2, 3, 2, kernel=2), "gaussian", damping=0.3, reinforcement=0.1)
    dense = replace(conv, graph=dense_edges(2, 4))
    windows = np.array([[image.reshape(2, 3)[:, left : left + 2].ravel() for left in (0, 1)] for image in images])
    names = ("H", "G", "field", "precision", "mean", "variance")
    assert_same(
        run_minibatch([conv], [], "label", images, y, algorithm, 3),
        run_minibatch(
            [dense],
            [],
            "label",
            windows.reshape(4, 4),
            y.reshape(2, 2, 2).swapaxes(1, 2).reshape(4, 2),
            algorithm,
            3,
        ),
        names,
    )


def test_sampled_argmax_uses_the_draws_of_its_iteration_and_sample():
    layers, activations, x, classes = small_problem()
    epsilon = np.random.default_rng(8).standard_normal((2, 4, 3))
    history = run_minibatch(layers, activations, ("argmax-sampled", epsilon), x, classes, "mf", 2)
    for tau, n in itertools.product(range(2), range(4)):
        omega, V, g = (history[tau][name][1][n] for name in ("omega", "V", "g"))
        np.testing.assert_array_equal(g, channels.argmax_sampled(classes[n], omega, V, epsilon[tau, n])[0])


@pytest.mark.parametrize("prior", PRIORS)
def test_damping_mixes_old_and_new_moments(prior):
    layers, activations, x, classes = small_problem(prior, seed=6)
    damped = [replace(layer, damping=0.25) for layer in layers]
    free, slow = (
        run_minibatch(net, activations, "argmax-pairwise", x, classes, "mf", 1)[0] for net in (layers, damped)
    )
    for depth, layer in enumerate(layers):
        mean = 0.25 * layer.mean + 0.75 * free["mean"][depth]
        square = 0.25 * (layer.variance + layer.mean**2) + 0.75 * (free["variance"][depth] + free["mean"][depth] ** 2)
        variance = free["variance"][depth] if prior == "gaussian" else square - mean**2
        np.testing.assert_allclose(slow["mean"][depth], mean, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(slow["variance"][depth], variance, rtol=1e-12, atol=1e-15)
        np.testing.assert_array_equal(slow["field"][depth], free["field"][depth])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("activation", ["sign", "relu", "identity", ("noisy_sign", 0.3)])
def test_three_layers_do_not_care_about_the_order_of_samples(algorithm, activation):
    rng = np.random.default_rng(7)
    graphs = conv_edges(1, 3, 4, 2, 2, padding=1, stride=2), dense_edges(5, 12), dense_edges(3, 5, bias=True)
    layers = [
        make_layer(rng, graph, prior, damping=0.5)
        for graph, prior in zip(graphs, ("gaussian", "ternary", "binary"), strict=True)
    ]
    layers[2] = replace(layers[2], focusing=(3.0, 0.8))
    x, epsilon, order = rng.standard_normal((4, 12)), rng.standard_normal((3, 4, 5)), np.array([2, 0, 3, 1])
    classes, labels = rng.integers(0, 3, 4), rng.choice([-1.0, 1.0], (4, 3))
    if activation in ("relu", "identity"):
        # Unbounded units under a hard argmax meet the floors, where rounding is amplified without limit.
        y, output, reordered = labels, ("noisy_label", 4.0), ("noisy_label", 4.0)
    else:
        y, output, reordered = classes, ("argmax-sampled", epsilon), ("argmax-sampled", epsilon[:, order])
    straight = run_minibatch(layers, [activation] * 2, output, x, y, algorithm, 3)
    mixed = run_minibatch(layers, [activation] * 2, reordered, x[order], y[order], algorithm, 3)
    for one, other in zip(straight, mixed, strict=True):
        for name in one:
            for a, b in zip(one[name], other[name], strict=True):
                expected = a if name in WEIGHT_NAMES else a[order]
                np.testing.assert_allclose(b, expected, rtol=1e-10, atol=1e-12, err_msg=name)
