"""The ground truths, checked in turn: against loops, plain quadrature, published numbers and simulation."""

from collections.abc import Iterator
from itertools import islice, product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erfcx
from scipy.stats import norm

from . import enumeration, linear_regression
from . import state_evolution as theory

# ---------------------------------------------------------------------------------------------- enumeration


def means_by_loops(x, y, fields, noise):
    """Posterior means of a network with one hidden layer, one configuration and one sample at a time."""
    first, second = (np.zeros(f.shape) for f in fields)
    total = 0.0
    for signs in product((-1.0, 1.0), repeat=first.size + second.size):
        w1, w2 = np.reshape(signs[: first.size], first.shape), np.reshape(signs[first.size :], second.shape)
        weight = np.exp((w1 * fields[0]).sum() + (w2 * fields[1]).sum())
        for x_n, y_n in zip(x, y, strict=True):
            hidden = [1.0 if row @ x_n >= 0 else -1.0 for row in w1]
            z = float(w2[0] @ hidden)
            weight *= norm.cdf(y_n * z / noise**0.5) if noise > 0 else float((z >= 0) == (y_n > 0))
        total, first, second = total + weight, first + weight * w1, second + weight * w2
    return first / total, second / total


@pytest.mark.parametrize("noise", [0.0, 0.7])
def test_enumeration_equals_loops(noise):
    """Binary inputs and even widths, so that preactivations of zero occur in both layers."""
    rng = np.random.default_rng(3)
    x, *teacher = (rng.choice([-1.0, 1.0], shape) for shape in ((4, 4), (1, 2, 4), (1, 1, 2)))
    y = np.where(enumeration.preactivations(x, teacher)[0] >= 0, 1.0, -1.0)
    fields = enumeration.random_fields((4, 2, 1), 0.5, rng)
    exact = enumeration.posterior_means(x, y, fields, noise)
    for ours, loops in zip(exact, means_by_loops(x, y, fields, noise), strict=True):
        np.testing.assert_allclose(ours, loops, atol=1e-13)


def test_enumeration_in_several_chunks_factorises_over_disjoint_inputs():
    """Inputs that each see one weight leave the weights independent: m = tanh(θ + ½ Σ_n log odds)."""
    rng, n, noise = np.random.default_rng(4), enumeration.CHUNK_BITS + 2, 1.3
    scales, y = rng.standard_normal(n), rng.choice([-1.0, 1.0], n)
    fields = enumeration.random_fields((n, 1), 0.5, rng)
    odds = norm.logcdf(y * scales / noise**0.5) - norm.logcdf(-y * scales / noise**0.5)
    (mean,) = enumeration.posterior_means(np.diag(scales), y, fields, noise)
    np.testing.assert_allclose(mean[0], np.tanh(fields[0][0] + odds / 2), atol=1e-12)


@pytest.mark.parametrize(("label", "mean"), [(1.0, 1 / 3), (-1.0, -1.0)])
def test_a_preactivation_of_zero_counts_as_plus_one(label, mean):
    (exact,) = enumeration.posterior_means(np.ones((1, 2)), np.array([label]), [np.zeros((1, 2))])
    np.testing.assert_allclose(exact, mean)


def test_without_fields_hidden_units_are_symmetric():
    rng = np.random.default_rng(5)
    fields = enumeration.random_fields((3, 3, 1), 0.0, rng)
    for mean in enumeration.posterior_means(rng.standard_normal((5, 3)), np.ones(5), fields, 0.5):
        np.testing.assert_allclose(mean, 0, atol=1e-14)


@pytest.mark.parametrize(
    ("x", "y", "shapes", "message"),
    [
        (np.ones((1, 27)), np.ones(1), [(1, 27)], "27 weights"),
        (np.ones((1, 3)), np.ones(1), [(1, 2)], "do not lead from 3 inputs"),
        (np.ones((1, 2)), np.ones(1), [(2, 2)], "to 1 output"),
        (np.ones((2, 2)), np.array([0.0, 1.0]), [(1, 2)], "-1 or \\+1"),
        (np.ones((2, 2)), np.array([-1.0, 1.0]), [(1, 2)], "no weight configuration"),
    ],
)
def test_enumeration_refuses(x, y, shapes, message):
    with pytest.raises(ValueError, match=message):
        enumeration.posterior_means(x, y, [np.zeros(s) for s in shapes])


# ------------------------------------------------------------------------------------------ linear regression


def test_regression_equals_conditioning_the_joint_gaussian():
    """Conditioning in data space (an M×M solve) instead of weight space, one output at a time."""
    rng, noise = np.random.default_rng(6), 0.3
    x, y, h, lam = (rng.standard_normal(s) for s in ((4, 6), (4, 2), (2, 6), (2, 6)))
    lam = 0.5 + lam**2
    mean, covariance = linear_regression.posterior(x, y, h, lam, noise)
    for k in range(2):
        prior = np.diag(1 / lam[k])
        gain = prior @ x.T @ np.linalg.inv(x @ prior @ x.T + noise * np.eye(4))
        guess = h[k] / lam[k]
        np.testing.assert_allclose(mean[k], guess + gain @ (y[:, k] - x @ guess), atol=1e-12)
        np.testing.assert_allclose(covariance[k], prior - gain @ x @ prior, atol=1e-12)


def test_regression_refuses():
    x, y, prior = np.ones((3, 2)), np.ones((3, 1)), np.ones((1, 2))
    with pytest.raises(ValueError, match="shapes"):
        linear_regression.posterior(x, y, prior.T, prior, 1.0)
    with pytest.raises(ValueError, match="positive"):
        linear_regression.posterior(x, y, prior, -prior, 1.0)


# -------------------------------------------------------------------------------------------- state evolution


def test_thresholds_are_the_published_ones():
    assert theory.information_threshold() == pytest.approx(1.245, abs=5e-4)
    assert theory.algorithmic_threshold() == pytest.approx(1.492, abs=1e-3)


@pytest.mark.parametrize("q", [0.01, 0.3, 0.9])
def test_both_maps_equal_quadrature_of_their_definitions(q):
    def squared_score(omega):
        u = omega / np.sqrt(1 - q)
        labels = sum(norm.pdf(u) ** 2 / norm.cdf(y * u) for y in (-1, 1))
        return norm.pdf(omega, scale=np.sqrt(q)) * labels / (1 - q)

    reach, q_hat = 9 * np.sqrt(q), 3 * q
    defined, _ = quad(squared_score, -min(reach, 6), min(reach, 6), epsabs=1e-13, limit=200)
    assert theory.conjugate_per_pattern(1 - q) == pytest.approx(defined, rel=1e-9)
    defined, _ = quad(lambda z: norm.pdf(z) * np.tanh(q_hat + np.sqrt(q_hat) * z), -9, 9, epsabs=1e-13)
    assert 1 - theory.gap_of(q_hat) == pytest.approx(defined, abs=1e-11)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0, 1.3, 1.45])
def test_the_overlap_is_where_iteration_ends_and_entropy_is_stationary(alpha):
    q, q_hat, step = theory.overlap(alpha), theory.conjugate(alpha), 1e-5
    assert theory.trajectory(alpha, 300)[-1] == pytest.approx(q, abs=1e-11)
    along_q = theory.entropy(alpha, q_hat, q + step) - theory.entropy(alpha, q_hat, q - step)
    along_q_hat = theory.entropy(alpha, q_hat + step, q) - theory.entropy(alpha, q_hat - step, q)
    np.testing.assert_allclose(np.array([along_q, along_q_hat]) / (2 * step), 0, atol=1e-7)


def test_iteration_stops_short_below_the_threshold_and_ends_at_the_teacher_above():
    threshold = theory.algorithmic_threshold()
    assert theory.trajectory(threshold - 0.01, 2000)[-1] < 0.9
    assert theory.trajectory(threshold + 0.01, 2000)[-1] == theory.overlap(threshold + 0.01) == 1.0
    assert theory.generalisation_error(1.7) == theory.gibbs_error(1.7) == theory.clipped_error(1.7) == 0.0


def test_the_three_errors_are_those_of_the_three_students():
    """Students drawn from the theory's own field distribution, labels compared on fresh inputs."""
    alpha, n, samples = 1.0, 1001, 20_000
    rng, q_hat = np.random.default_rng(7), theory.conjugate(1.0)
    teacher = rng.choice([-1.0, 1.0], n)
    mean = np.tanh(q_hat * teacher + np.sqrt(q_hat) * rng.standard_normal(n))
    gibbs = np.where(rng.random(n) < (1 + mean) / 2, 1.0, -1.0)
    x = rng.standard_normal((samples, n))
    students = (
        (theory.generalisation_error(alpha), mean),
        (theory.gibbs_error(alpha), gibbs),
        (theory.clipped_error(alpha), np.sign(mean)),
    )
    for error, student in students:
        measured = np.mean((x @ student > 0) != (x @ teacher > 0))
        # Noise of the fresh inputs, and of an overlap R of n independent signs: variance (1 − R²)/n.
        spread = np.sqrt(error * (1 - error) / samples + 1 / (n * np.pi**2))
        assert measured == pytest.approx(error, abs=4 * spread)


# --------------------------------------------------------------- simulation: AMP for the perceptron, in numpy


def score(omega, variance, y):
    """g = ∂_ω log Φ(yω/√V) and Γ = −∂_ω g."""
    g = y * np.sqrt(2 / (np.pi * variance)) / erfcx(-y * omega / np.sqrt(2 * variance))
    return g, g * (g + omega / variance)


def amp(x, y, floor=0.5, reinforcement_step=0.0) -> Iterator[np.ndarray]:
    """Posterior means of a ±1 perceptron, after each iteration of AMP from zero fields, without damping.

    V in the channel is floored at `floor` times the mean square input, about what one undecided weight adds:
    AMP expands g(ω − m x) to first order, which is void once √V < |x|. The reaction term keeps the true V.
    """
    squares, mean, field, g, r = x**2, np.zeros(x.shape[1]), 0.0, 0.0, 0.0
    while True:
        variance = squares @ (1 - mean**2)
        g, curvature = score(x @ mean - g * variance, np.maximum(variance, floor * squares.mean()), y)
        field = x.T @ g + mean * (squares.T @ curvature) + r * field
        mean, r = np.tanh(field), 1 - (1 - r) * (1 - reinforcement_step)
        yield mean


def draw_inputs(kind, shape, rng):
    return rng.standard_normal(shape) if kind == "gaussian" else rng.choice([-1.0, 1.0], shape)


def teacher_student(kind, alpha, n, seed):
    rng = np.random.default_rng(seed)
    x, teacher = draw_inputs(kind, (round(alpha * n), n), rng), rng.choice([-1.0, 1.0], n)
    return x, np.where(x @ teacher >= 0, 1.0, -1.0), teacher


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gaussian", "binary"])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.3])
def test_amp_follows_state_evolution(kind, alpha):
    """Every iteration's overlap and the final error, averaged over instances, within 4 standard errors.

    Those must be small enough to tell the vote from the next best student, the clipped one.
    """
    n, iterations, seeds = 1001, 20, 24
    overlaps, errors = [], []
    for seed in range(seeds):
        x, y, teacher = teacher_student(kind, alpha, n, seed)
        means = list(islice(amp(x, y), iterations))
        overlaps.append([mean @ teacher / n for mean in means])
        cosine = means[-1] @ teacher / (np.linalg.norm(means[-1]) * np.sqrt(n))
        errors.append(np.arccos(cosine) / np.pi)
    tolerance = 4 * np.std(overlaps, axis=0, ddof=1) / seeds**0.5
    assert (np.abs(np.mean(overlaps, axis=0) - theory.trajectory(alpha, iterations)) < tolerance).all()
    tolerance = 4 * np.std(errors, ddof=1) / seeds**0.5
    assert np.mean(errors) == pytest.approx(theory.generalisation_error(alpha), abs=tolerance)
    assert tolerance < theory.clipped_error(alpha) - theory.generalisation_error(alpha)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gaussian", "binary"])
def test_amp_finds_the_teacher_above_the_threshold_and_stays(kind):
    for seed in range(5):
        x, y, teacher = teacher_student(kind, 1.7, 1001, seed)
        wrong = [np.count_nonzero(np.sign(mean) != teacher) for mean in islice(amp(x, y), 80)]
        assert not any(wrong[19:])


@pytest.mark.parametrize("kind", ["gaussian", "binary"])
def test_amp_forgets_the_teacher_when_the_variance_may_vanish(kind):
    """Why there is a floor: with V → 0 every pattern looks safe, no field is left, and all starts anew."""
    x, y, teacher = teacher_student(kind, 1.7, 1001, 0)
    overlaps = [mean @ teacher / 1001 for mean in islice(amp(x, y, floor=1e-16), 40)]
    found = int(np.argmax(np.array(overlaps) > 0.999))
    assert 0 < found < 20
    assert min(overlaps[found:]) < 0.1


@pytest.mark.parametrize("kind", ["gaussian", "binary"])
def test_reinforced_amp_stores_random_patterns(kind):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x, y = draw_inputs(kind, (round(0.6 * 1001), 1001), rng), rng.choice([-1.0, 1.0], round(0.6 * 1001))
        means = islice(amp(x, y, reinforcement_step=0.05), 100)
        assert any(((x @ np.sign(mean)) * y > 0).all() for mean in means)
