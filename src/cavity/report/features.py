"""What the units of a network look at, as arrays for pictures: weights of the first layer, and maps of convolutions."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from cavity.core.algorithms.mf import MF
from cavity.core.couplings import Conv2d
from cavity.core.layer import Layer
from cavity.core.network import Network
from cavity.core.sweep import sweep_up
from cavity.data import Dataset
from cavity.report.summary import FeatureMaps, FirstLayer, Floats

#: Units of the first layer that are shown; images and channels of each layer of maps.
UNITS, IMAGES, CHANNELS = 48, 4, 8


def bound_of(layer: Layer) -> float | None:
    """The largest |m| of the kind of weight, if it has one."""
    return float(np.sqrt(layer.prior.largest_square)) if layer.prior.largest_square > 0 else None


def first_layer(net: Network, image_shape: tuple[int, int, int] | None) -> FirstLayer | None:
    """The means as pictures, if the layer's inputs are an image."""
    layer = net.weighted()[0]
    coupling = layer.coupling
    if isinstance(coupling, Conv2d):
        shape = (coupling.input_shape[0], *coupling.kernel)
    elif image_shape is not None and np.prod(image_shape) == np.prod(coupling.input_shape):
        shape = image_shape
    else:
        return None
    means = coupling.without_constant(layer.mean[:UNITS]).double().cpu().reshape(-1, *shape)
    bound = bound_of(layer)
    if net.front is not None:
        means, bound = _through(net, means), None
    weights: Floats = means.numpy()
    return FirstLayer(weights, bound or float(np.abs(weights).max()) or 1.0, coupling.outputs, net.front is not None)


def _through(net: Network, means: Tensor) -> Tensor:
    """Weights on whitened patches (units, components, height, width) as weights on the pixels that they come from:
    both steps are linear, so that this is the transpose of the whitening."""
    assert net.front is not None
    patch = net.front.coupling
    filters = net.front.filters.double().cpu().reshape(-1, net.front.input_shape[0], *patch.kernel)
    return torch.nn.functional.conv_transpose2d(means, filters, stride=patch.stride)


@torch.no_grad()
def feature_maps(net: Network, dataset: Dataset) -> tuple[FeatureMaps, ...]:
    """For each convolution the posterior means of its units, pooled if they are, on a test image of each of the first
    classes; nothing for a network without convolutions."""
    layers = net.weighted()
    if not any(isinstance(layer.coupling, Conv2d) for layer in layers) or not len(dataset.x_test):
        return ()
    chosen = of_each_class(dataset.y_test)[:IMAGES]
    x = net.prepared(net.check_inputs(dataset.x_test[chosen]))
    ups = sweep_up(MF(), net.sites, [layer.posterior for layer in layers], x)
    found = []
    for number, layer in enumerate(layers[:-1]):
        if isinstance(layer.coupling, Conv2d):
            pool, shape = net.pools[number], layer.coupling.output_shape
            shape = shape if pool is None else pool.output_shape(shape)
            units = ups[number + 1].inputs.mean.reshape(len(chosen), *shape)
            maps: Floats = units[:, :CHANNELS].double().cpu().numpy()
            words = net.activations[number].name if pool is None else f"{net.activations[number].name}, {pool!r}"
            found.append(FeatureMaps(f"Layer {number + 1}", words, tuple(chosen), maps, shape[0]))
    return tuple(found)


def of_each_class(labels: Tensor) -> list[int]:
    """The first sample of each class, in the order of the classes."""
    _, first = np.unique(labels.numpy(force=True), return_index=True)
    return [int(place) for place in first]
