# %% [markdown]
# # Two moons with uncertainty
# A boundary between two classes is known only where samples lie on both sides of it. Beyond them the classifier
# grows unsure: its boundary opens like a fan.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import cavity

X, y = make_moons(300, noise=0.2, random_state=0)
classifier = cavity.MessagePassingClassifier(random_state=0).fit(X, y)
print(f"{classifier.score(X, y):.3f} of the training set right")

# %% [markdown]
# `predict_proba` averages over the posterior of the weights. `predictive_entropy` says where its doubt comes from:
# *aleatoric* doubt is noise in the labels, which more data would not remove; *epistemic* doubt is ignorance, which
# they would. Far from the boundary a network of ReLU units is sure of its class, wherever that is: entropy is no
# alarm for inputs that are unlike anything it has seen.

# %%
a, b = np.meshgrid(np.linspace(-4, 5, 90), np.linspace(-3.5, 4, 75))
grid = np.column_stack([a.ravel(), b.ravel()])
p = classifier.predict_proba(grid)[:, 1].reshape(a.shape)
doubt = classifier.predictive_entropy(grid, n=60, random_state=0)

# %% The probability of one class, its aleatoric and its epistemic doubt, as maps of the plane
panels = {
    "probability of class 1": (p, "RdBu_r", 1.0),
    "aleatoric doubt (nats)": (doubt.aleatoric.reshape(a.shape), "viridis", np.log(2)),
    "epistemic doubt (nats)": (doubt.epistemic.reshape(a.shape), "viridis", None),
}
figure, axes = plt.subplots(1, 3, figsize=(10, 3.1), layout="constrained", sharey=True)
for ax, (title, (values, colours, top)) in zip(axes, panels.items()):
    image = ax.pcolormesh(a, b, values, cmap=colours, vmin=0, vmax=top, rasterized=True)
    ax.scatter(*X.T, c=y, cmap="RdBu_r", s=7, edgecolor="white", linewidth=0.3)
    ax.set_title(title, fontsize=10)
    figure.colorbar(image, ax=ax, shrink=0.8)
plt.show()

# %% [markdown]
# The epistemic part is largest where a bend of the boundary rests on a few samples.
