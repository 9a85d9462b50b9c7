# %% [markdown]
# # Sparse layers
# Weights that do not exist cost neither memory nor certainty. A mask says which ones do; here a random mask of
# growing density is compared with one in which every hidden unit sees a small patch of the image.

# %%
import matplotlib.pyplot as plt
import torch

import cavity

data = cavity.data.load("digits")
train, test = (data.x_train, data.y_train), (data.x_test, data.y_test)


def trained(net):
    """The test error in per cent, of the posterior."""
    trainer = cavity.Trainer(net, "mf", seed=0)
    return trainer.fit(train, validation=test, epochs=10, batch_size=64)[-1].test_error_bayes


densities = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
random = {}
for density in densities:
    net = cavity.mlp(64, (225,), 10, density=density, seed=0)
    random[sum(layer.free_weights for layer in net.layers)] = trained(net)

# %% [markdown]
# A mask of your own is a boolean matrix (outputs, inputs). Each of the 225 units of the first layer sees one patch of
# 4 × 4 pixels, so that only a quarter of its weights exist. The readout is full.

# %%
patches = torch.zeros(225, 8, 8, dtype=torch.bool)
for unit in range(225):
    row, column = unit % 25 // 5, unit % 5
    patches[unit, row : row + 4, column : column + 4] = True
masked = cavity.Layer(cavity.Dense(64, 225), mask=patches.flatten(1))
local = cavity.Network([masked, "sign", cavity.Dense(225, 10), "argmax"])
count, error = sum(layer.free_weights for layer in local.layers), trained(local)
print(f"patches: {count:,} weights, {error:.1f} % wrong")

# %% Test error against the number of weights for random masks, with a star for patches; and the masks of some units
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.2), layout="constrained")
left.semilogx(list(random), list(random.values()), "o-", label="random masks")
left.plot(count, error, "*", markersize=14, label="patches of 4 × 4 pixels")
left.set(xlabel="weights that exist", ylabel="test error, %", ylim=(0, None))
left.legend()
weights = torch.nn.functional.pad(local.layers[0].mean[:50].reshape(5, 10, 8, 8), (1, 1, 1, 1), value=torch.nan)
right.imshow(weights.permute(0, 2, 1, 3).reshape(50, 100).numpy(), vmin=-1, vmax=1, cmap="RdBu")
right.set(title="fifty units with patches", xticks=[], yticks=[], facecolor="0.4")
plt.show()

# %% [markdown]
# A tenth of the weights, drawn at random, loses a few points; a quarter loses next to nothing. On images of 8 × 8
# pixels patches are no better than chance.
#
# [Train sparse networks](../how-to/sparse.md) says how masks are exported, and how ternary weights learn their zeros.
