# %% [markdown]
# # A network in C
# A trained network becomes one C file without heap, floats or libraries. We export a digit classifier, compile it,
# and ask it the same questions as the Python object: all answers agree.

# %%
import ctypes
import subprocess
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import cavity

data = cavity.data.load("digits")
net = cavity.mlp(64, (101,), 10, seed=0)
cavity.Trainer(net, "mf", seed=0).fit((data.x_train, data.y_train), epochs=15, batch_size=64)

inputs = cavity.export.Inputs.pixels(data.mean, data.std, white=16)
trained = cavity.export.Trained(net, inputs, data.classes)
cavity.export.to_c(trained, "digits.c")
print("".join(Path("digits.h").read_text().splitlines(keepends=True)[:12]))

# %% [markdown]
# Any C99 compiler will do. On a microcontroller the file is added to the project; here it becomes a shared library,
# which Python can call.

# %%
subprocess.run(["cc", "-Os", "-std=c99", "-shared", "-fPIC", "digits.c", "-o", "digits.so"], check=True)
compiled = ctypes.CDLL("./digits.so")
pixels = np.ascontiguousarray(load_digits().data, dtype=np.uint8)


def predict(sample):
    return compiled.digits_predict(sample.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8)))


def scores(sample):
    found = np.zeros(10, dtype=np.int32)  # digits_score is int32_t
    compiled.digits_scores(sample.ctypes.data_as(ctypes.c_void_p), found.ctypes.data_as(ctypes.c_void_p))
    return found


assert "typedef int32_t digits_score;" in Path("digits.h").read_text()
cavity.export.to_packed(trained, "digits.cavity")
ours = cavity.packed.load("digits.cavity").predict(pixels)
theirs = [predict(sample) for sample in pixels]
print(f"{np.mean(ours == theirs):.0%} of {len(pixels):,} answers agree")

# %% Five digits, and the scores that the C code gives to each class
figure, axes = plt.subplots(2, 5, figsize=(10, 3), layout="constrained", height_ratios=(1, 1.2))
for (above, below), sample in zip(axes.T, pixels[10:15]):
    above.imshow(sample.reshape(8, 8), cmap="gray_r")
    above.set(xticks=[], yticks=[])
    votes = scores(sample)
    below.bar(range(10), votes, color=["C1" if k == votes.argmax() else "C0" for k in range(10)])
    below.set(xticks=range(10), yticks=[0])
    below.tick_params(labelsize=7)
axes[1, 0].set_ylabel("votes", fontsize=8)
plt.show()

# %% [markdown]
# [Export to C](../how-to/ship-to-c.md) goes on from here, with sizes and instruction counts on four kinds of boards.
