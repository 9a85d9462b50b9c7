# %% [markdown]
# # An activation of your own
# Any piecewise-linear function becomes an activation in three lines: where it bends, its slopes and its
# offsets. The messages, with all their derivatives, follow from that.

# %%
import matplotlib.pyplot as plt
import torch

import cavity
from cavity.core.messages import Preactivation


class Staircase(cavity.PiecewiseLinear):
    """−1, 0 or 1: a sign that abstains where its sum is small."""

    edges, slopes, offsets = (-4.0, 4.0), (0.0, 0.0, 0.0), (-1.0, 0.0, 1.0)


# %% [markdown]
# In a forward pass a unit does not get a number but a Gaussian, and answers with a mean and a variance. A wide Gaussian
# makes a soft staircase:

# %% The staircase, softer for inputs of larger variance, and the variance of its output
omega = torch.linspace(-12, 12, 400)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3), layout="constrained")
for variance in (0.01, 4.0, 25.0):
    unit = Staircase().moments(None, Preactivation(omega, torch.full_like(omega, variance)))
    left.plot(omega, unit.mean, label=f"variance {variance:g}")
    right.plot(omega, unit.variance)
left.set(xlabel="mean of the input", title="mean of the output")
right.set(xlabel="mean of the input", title="variance of the output")
left.legend()
plt.show()

# %% [markdown]
# It trains like any other. An object stands wherever a name could stand:

# %% Test error of the posterior for sign and staircase units, falling over fifteen epochs
data = cavity.data.load("digits")
train, test = (data.x_train, data.y_train), (data.x_test, data.y_test)
figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for name, activation in (("sign", "sign"), ("step", "step"), ("staircase", Staircase())):
    net = cavity.mlp(64, (101,), 10, activation=activation, seed=0)
    history = cavity.Trainer(net, "mf", seed=0).fit(train, validation=test, epochs=15, batch_size=64)
    ax.plot(range(1, 16), [record.test_error_bayes for record in history], ".-", label=name)
ax.set(xlabel="epoch", ylabel="test error, %", ylim=(0, None))
ax.legend()
plt.show()

# %% [markdown]
# Functions that are not piecewise linear, outputs and whole algorithms are no harder:
# [Add an activation or an algorithm](../how-to/extend.md).
