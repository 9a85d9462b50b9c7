# %% [markdown]
# # The phase transition of a perceptron
# A student learns from a teacher's answers, and at a certain number of examples it suddenly knows everything.
# Statistical physics has predicted where since 1990. Message passing is the algorithm that belongs to that theory, so
# that its error must lie on the curve, without any parameter to fit.
#
# The teacher is a perceptron of ±1 weights, $y = \mathrm{sign}(w^* \cdot x)$. The student sees $\alpha N$ random inputs
# with their labels, and one step of approximate message passing over all of them gives the mean of every weight.

# %%
import matplotlib.pyplot as plt
import numpy as np
import torch
from scipy.special import erfcx

import cavity

N = 1001


def student_error(alpha, seed):
    """How often the posterior's vote differs from the teacher on a new input: from the angle between the two."""
    random = np.random.default_rng(seed)
    teacher = random.choice([-1.0, 1.0], N)
    x = random.standard_normal((round(alpha * N), N))
    y = np.where(x @ teacher >= 0, 1.0, -1.0)
    net = cavity.mlp(N, (), 1, init=0.0)
    trainer = cavity.Trainer(net, "amp", rho=1.0, damping=0.0, inner_iterations=60)
    trainer.step(torch.from_numpy(x).float(), torch.from_numpy(y))
    mean = net.layers[0].mean[0].numpy()
    return np.arccos(min(1.0, mean @ teacher / (np.linalg.norm(mean) * N**0.5))) / np.pi


loads = [0.2, 0.5, 0.8, 1.1, 1.3, 1.4, 1.5, 1.6, 1.8]
measured = [[student_error(alpha, seed) for seed in range(3)] for alpha in loads]

# %% [markdown]
# The theory has one number, the overlap $q$ of the posterior mean with the teacher, and two equations to iterate
# ($\mathcal N$ and $\Phi$ are the normal density and distribution):
#
# $$
# \hat q = \alpha \sqrt{\frac{2}{\pi (1 - q)}} \int\! Ds\, \frac{\mathcal N(\sqrt q\, s)}{\Phi(\sqrt q\, s)}
# \qquad
# 1 - q = e^{-\hat q / 2} \int\! Dz\, \frac{1}{\cosh(\sqrt{\hat q}\, z)}
# $$


# %% The student's error falls along the predicted curve, and drops to zero at 1.49 examples for each weight
def predicted_error(alpha):
    z = np.linspace(-12, 12, 481)
    normal = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    gap, before = 1.0, np.inf
    while 1e-6 < gap < before - 1e-7:
        before = gap
        mills = np.sqrt(2 / np.pi) / erfcx(-np.sqrt((1 - gap) / 2) * z)
        field = alpha * np.sqrt(2 / (np.pi * gap)) * (normal @ mills)
        gap = np.exp(-field / 2) * (normal @ (1 / np.cosh(np.sqrt(field) * z)))
    return np.arccos(np.sqrt(1 - gap)) / np.pi if gap > 1e-6 else 0.0


line = np.linspace(0.02, 2, 100)
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.plot(line, [predicted_error(alpha) for alpha in line], "k", label="theory, infinitely many weights")
ax.plot(np.repeat(loads, 3), np.ravel(measured), "C0o", markersize=5, alpha=0.6, label=f"message passing, {N} weights")
ax.axvline(1.49, color="C3", linestyle=":", label="threshold, 1.49")
ax.set(xlabel="examples per weight, α", ylabel="probability of a wrong answer", xlim=(0, 2), ylim=(-0.01, 0.5))
ax.legend()
plt.show()
