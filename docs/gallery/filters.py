# %% [markdown]
# # Filters of a convolutional network
# A convolution of ±1 weights learns edges and corners that can be seen at a glance. Sixteen kernels of 4 × 4
# pixels slide over the digits; a max pool and a readout follow.

# %%
import matplotlib.pyplot as plt
import torch

import cavity

data = cavity.data.load("digits")
net = cavity.network("conv:16:4,pool:2,dense:101", (1, 8, 8), 10, threshold=True, seed=0)
print(net)

# %%
trainer = cavity.Trainer(net, "mf", seed=0)
history = trainer.fit((data.x_train, data.y_train), validation=(data.x_test, data.y_test), epochs=12, batch_size=64)
print(f"test error {history[-1].test_error:.1f} % of the bits, {history[-1].test_error_bayes:.1f} % of the posterior")

# %% [markdown]
# Each filter is a row of the first layer's means. Beside it is what it says about one digit: the sign of every
# position's sum, before the pool.

# %% Sixteen filters of 4 x 4 weights, and below each of them where it answers +1 on a digit
layer, image = net.layers[0], data.x_test[:1].reshape(1, 1, 8, 8)
sums = torch.nn.functional.conv2d(image, layer.mean.sign().reshape(16, 1, 4, 4))[0] + layer.threshold.mean[:, :, None]

figure, axes = plt.subplots(2, 17, figsize=(10, 1.6), layout="constrained")
axes[0, 0].axis("off")
axes[1, 0].imshow(image[0, 0].numpy(), cmap="gray_r")
for number in range(16):
    filters, answers = axes[:, number + 1]
    filters.imshow(layer.mean[number].reshape(4, 4).numpy(), vmin=-1, vmax=1, cmap="RdBu")
    answers.imshow((sums[number] >= 0).numpy(), cmap="gray_r")
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
plt.show()

# %% [markdown]
# [Convolutional networks](../how-to/convolutions.md) has more: whitening, augmentation, and what can be exported.
