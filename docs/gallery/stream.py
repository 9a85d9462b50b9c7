# %% [markdown]
# # A stream without forgetting
# Five tasks come one after the other, and nobody says where one ends. Each is the digits with its pixels
# shuffled in another way, which is the hardest case: all tasks want the same weights.

# %%
import matplotlib.pyplot as plt

import cavity

data = cavity.data.load("digits")
tasks = [data.permuted(number) for number in range(5)]


def accuracies(net):
    """On the test set of every task, with the posterior."""
    return [(net.predict(task.x_test, "bayes") == task.y_test).float().mean().item() for task in tasks]


def followed(activation):
    """Accuracy on every task (columns) after each pass over a task's samples (rows); three passes for each task."""
    net = cavity.mlp(64, (501,), 10, activation=activation, seed=0)
    trainer = cavity.Trainer(net, "mf", memory=20_000, seed=0)
    rows = []
    for task in tasks:
        for _ in range(3):
            for x, y in zip(task.x_train.split(32), task.y_train.split(32)):
                trainer.step(x, y)
            rows.append(accuracies(net))
    return rows


# %% [markdown]
# `memory=20_000` lets what was learnt 20,000 samples ago fade to 37 %; it is the only number to choose, and the rate of
# learning follows from it. The activation makes the difference. A *sign* unit speaks about every image. A *relative
# gate* is silent for most of them, and the weights of a silent unit are left alone.

# %% Two panels of five curves: with sign units each task is forgotten as others come, with gates it is mostly kept
figure, axes = plt.subplots(1, 2, figsize=(10, 3.2), layout="constrained", sharey=True)
for ax, activation in zip(axes, ("sign", "relative-gate")):
    rows = followed(activation)
    for number, curve in enumerate(zip(*rows)):
        start = 3 * number
        ax.plot(range(start + 1, 16), curve[start:], ".-", label=f"task {number + 1}")
        ax.axvspan(start + 0.5, start + 3.5, color=f"C{number}", alpha=0.1, linewidth=0)
    mean = sum(rows[-1]) / len(tasks)
    ax.set(title=f"{activation}: {mean:.0%} on average at the end", xlabel="passes over 1,438 digits", ylim=(0, 1))
    ax.set_xlim(0.5, 15.5)
axes[0].set_ylabel("test accuracy")
axes[0].legend(fontsize=8, loc="lower left")
plt.show()

# %% [markdown]
# [Keep learning from new data](../how-to/continual.md) has a thousand such tasks on MNIST, compared with other methods.
