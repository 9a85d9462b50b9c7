# %% [markdown]
# # Calibration against an MLP
# When a classifier says 90 %, is it right nine times out of ten? On noisy data a network trained by gradients is too
# sure of itself: it fits the noise as well. The posterior of message passing averages over all weights that the data
# leave open.

# %%
import warnings

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_predict
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import cavity
from cavity import calibration

# MLPClassifier's 200 epochs are its default, whether it has converged or not.
warnings.simplefilter("ignore", ConvergenceWarning)
X, y = make_classification(1000, 20, random_state=1)
models = {
    "message passing": cavity.MessagePassingClassifier(random_state=0),
    "MLPClassifier": make_pipeline(StandardScaler(), MLPClassifier(random_state=0)),
}

# %% [markdown]
# Both have their default options. Every sample is predicted by a model that has not seen it (five folds). ECE is the
# mean distance between confidence and accuracy; NLL is what a wrong answer costs that was given with confidence.

# %% Two reliability diagrams; the MLP lies further below the diagonal, and is sure of many more samples
labels = torch.from_numpy(y)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
for ax, (name, model) in zip(axes, models.items()):
    p = torch.from_numpy(cross_val_predict(model, X, y, cv=5, method="predict_proba"))
    accuracy = (p.argmax(dim=1) == labels).double().mean()
    nll = calibration.negative_log_likelihood(p, labels)
    ece = calibration.expected_calibration_error(p, labels)
    calibration.plot_reliability(calibration.reliability(p, labels, bins=10), ax)
    ax.set_title(f"{name}\n{accuracy:.1%} right, NLL {nll:.2f}, ECE {ece:.1%}", fontsize=10)
    axes[2].hist(p.amax(dim=1), bins=25, range=(0.5, 1), histtype="step", label=name)
axes[2].set(xlabel="confidence", ylabel="test samples")
axes[2].set_title("how sure they are", fontsize=10)
axes[2].legend(fontsize=8, loc="upper left")
plt.show()

# %% [markdown]
# [Calibration](../uncertainty.md) has more data sets, and compares with ensembles, dropout and others.
