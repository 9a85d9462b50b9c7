# %% [markdown]
# # A digit classifier of single bits
# Every weight of this network is +1 or −1, and still it knows which of its answers to doubt. It is trained on
# scikit-learn's digits, 8 × 8 pixels, in a few seconds.

# %%
import matplotlib.pyplot as plt

import cavity

data = cavity.data.load("digits")
net = cavity.mlp(64, (201, 201), 10, weights="binary", activation="sign", seed=0)
trainer = cavity.Trainer(net, "mf", seed=0)
trainer.fit((data.x_train, data.y_train), epochs=20, batch_size=64)

bits = (net.predict(data.x_test) == data.y_test).float().mean()
p = net.predict_proba(data.x_test)
posterior = (p.argmax(dim=1) == data.y_test).float().mean()
size = sum(layer.free_weights for layer in net.layers)
print(f"{size:,} weights, {size / 8 / 1024:.1f} kB as bits")
print(f"{bits:.1%} right with the most probable weights, {posterior:.1%} with their posterior")

# %% [markdown]
# A weight's mean lies between −1 and +1. Below are those of the first ten hidden units, in the posterior that gives
# the probabilities: the dark ones are certain, the pale ones could as well have the other sign.

# %% Ten 8 x 8 pictures of weight means, dark blue and red where they are certain, pale where not
first = net.layers[0].posterior.moments.mean.reshape(-1, 8, 8)
figure, axes = plt.subplots(1, 10, figsize=(10, 1.2), layout="constrained")
for ax, weights in zip(axes, first):
    ax.imshow(weights.numpy(), vmin=-1, vmax=1, cmap="RdBu")
    ax.set(xticks=[], yticks=[])
plt.show()

# %% [markdown]
# The test digits with the largest entropy of the prediction, with the true class and the two most probable ones. If
# the network may pass these on to a person, the rest are nearly all right:

# %% The ten most doubtful digits with their classes
doubt = cavity.calibration.entropy(p)
order = doubt.argsort(descending=True)
figure, axes = plt.subplots(1, 10, figsize=(10, 1.6), layout="constrained")
for ax, index in zip(axes, order.tolist()):
    (a, b), (one, two) = (values.tolist() for values in p[index].topk(2))
    ax.imshow((data.x_test[index] * data.std + data.mean).reshape(8, 8).numpy(), cmap="gray_r")
    ax.set(xticks=[], yticks=[])
    ax.set_title(f"a {data.y_test[index]}\n{one}: {a:.0%}\n{two}: {b:.0%}", fontsize=8)
plt.show()

kept = order[len(order) // 10 :]
right = (p[kept].argmax(dim=1) == data.y_test[kept]).float().mean()
print(f"without the most doubtful tenth: {right:.1%} right")
