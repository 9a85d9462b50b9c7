# %% [markdown]
# # Regression with error bars
# Every prediction comes with a standard deviation, which grows where there are no data. Here 120 points of a curve
# have a gap in the middle and end on both sides.
#
# With one raw input, a network of ReLU units is stiff: it would draw a line with two bends. Random Fourier features
# (scikit-learn's `RBFSampler`) in front of it make it flexible; a table with several columns does not need them.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline

import cavity


def curve(x):
    return np.sin(2 * x) + 0.4 * x


random = np.random.default_rng(0)
x = np.concatenate([random.uniform(-3, -0.8, 60), random.uniform(0.9, 3, 60)])[:, None]
y = curve(x[:, 0]) + random.normal(0, 0.15, len(x))

features = RBFSampler(gamma=0.7, n_components=200, random_state=0)
model = make_pipeline(features, cavity.MessagePassingRegressor(hidden=(51,), random_state=0)).fit(x, y)
regressor = model[-1]
print(f"noise: {regressor.noise_:.2f} estimated, 0.15 in truth")

# %% [markdown]
# `return_std=True` gives the standard deviation of a new measurement, which has two parts: the noise and the doubt of
# the weights. Functions drawn from the posterior show the second part alone. They agree where the points are, and go
# their own ways elsewhere.

# %% Points, the predicted curve with bands that widen in the gap, and twelve functions that spread there
line = np.linspace(-4.5, 4.5, 300)[:, None]
mean, std = model.predict(line, return_std=True)
draws = [regressor.predict_with(features.transform(line), weights) for weights in regressor.sample(12, random_state=0)]

figure, axes = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained", sharey=True)
for width, alpha in ((2, 0.15), (1, 0.25)):
    axes[0].fill_between(line[:, 0], mean - width * std, mean + width * std, color="C0", alpha=alpha, linewidth=0)
axes[0].plot(line, mean, "C0", label="predicted")
axes[0].set_title("mean, one and two standard deviations", fontsize=10)
axes[1].plot(line, np.transpose(draws), "C0", linewidth=0.7, alpha=0.6)
axes[1].set_title("twelve functions from the posterior", fontsize=10)
for ax in axes:
    ax.plot(x, y, "k.", markersize=3)
    ax.plot(line, curve(line), "k--", linewidth=0.8, label="truth")
    ax.set(xlabel="x", ylim=(-3.5, 3.5))
axes[0].legend(loc="upper left", fontsize=8)
plt.show()
