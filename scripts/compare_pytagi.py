"""Train 784-501-501 with pytagi (gradient-free Gaussian inference) and write its probabilities for the comparison.

It runs in an environment of its own, with numpy and pytagi alone. Its wheel wants Debian's libopenmpi3 and the library
inside the nvidia-nccl-cu12 wheel on LD_LIBRARY_PATH, even on a processor.

    python scripts/compare_uncertainty.py --export images.npz                         # cavity's environment
    python scripts/compare_pytagi.py images.npz pytagi.npz --epochs 3                 # pytagi's environment
    python scripts/compare_uncertainty.py --pytagi pytagi.npz
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pytagi
from pytagi import Utils
from pytagi.nn import Linear, OutputUpdater, ReLU, Sequential

CLASSES, BATCH = 10, 128
#: Standard deviation of the observations: pytagi's examples take 1 to 2.
NOISE = 1.0


def probabilities(net: Sequential, x: np.ndarray, utils: Utils, tree: object, units: int) -> np.ndarray:
    """Class probabilities (samples, 10) by pytagi's own tree of binary decisions, rows made to sum to 1."""
    parts = []
    for start in range(0, len(x), BATCH):
        part = x[start : start + BATCH]
        # A batch of another size would change the buffers: the last one is filled up and cut again.
        full = np.concatenate([part, np.zeros((BATCH - len(part), x.shape[1]), np.float32)])
        mean, variance = (np.asarray(values).reshape(BATCH, units) for values in net(full.ravel()))
        rows = [utils.obs_to_label_prob(m, v, tree, CLASSES) for m, v in zip(mean, variance, strict=True)]
        parts.append(np.asarray(rows)[: len(part), :CLASSES])
    p = np.concatenate(parts).astype(np.float64)
    return p / p.sum(axis=1, keepdims=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("images", help="by compare_uncertainty.py --export")
    parser.add_argument("out", help="the .npz to write")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, help="train on so many images, to try the script out")
    args = parser.parse_args()
    data = np.load(args.images)
    x, y = data["x"][: args.samples].astype(np.float32), data["y"][: args.samples]
    pytagi.manual_seed(0)
    utils, generator = Utils(), np.random.default_rng(0)
    tree = utils.get_hierarchical_softmax(CLASSES)
    units = tree.len
    net = Sequential(Linear(x.shape[1], 501), ReLU(), Linear(501, 501), ReLU(), Linear(501, units))
    net.set_threads(1)
    updater = OutputUpdater(net.device)
    noise = np.full((BATCH * tree.num_obs,), NOISE**2, np.float32)
    started = time.process_time()
    for epoch in range(args.epochs):
        order = generator.permutation(len(x))
        for batch in order[: len(x) // BATCH * BATCH].reshape(-1, BATCH):
            net(x[batch].ravel())
            observed, index, _ = utils.label_to_obs(labels=y[batch], num_classes=CLASSES)
            updater.update_using_indices(net.output_z_buffer, observed, noise, index, net.input_delta_z_buffer)
            net.backward()
            net.step()
        print(f"epoch {epoch + 1}, {time.process_time() - started:.0f} s", flush=True)
    seconds = time.process_time() - started
    weights = sum(np.size(part) for layer in net.state_dict().values() for part in layer)
    test, foreign = (probabilities(net, data[name], utils, tree, units) for name in ("x_test", "foreign"))
    print(f"accuracy {100 * np.mean(test.argmax(axis=1) == data['y_test']):.2f} %")
    np.savez(args.out, test=test, foreign=foreign, seconds=seconds, bytes=4 * weights, epochs=args.epochs)


if __name__ == "__main__":
    main()
