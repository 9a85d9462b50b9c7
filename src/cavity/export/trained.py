"""What is exported: a network, a description of its raw inputs, and its class names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cavity.core.channels import Sign
from cavity.core.couplings import Dense
from cavity.core.network import Network
from cavity.data.registry import PERMUTED, split_name
from cavity.export.framing import Framing
from cavity.packed.confidence import Confidence

if TYPE_CHECKING:
    from cavity.runs.folder import Run

KINDS = ("pixels", "real")
WHITE = 255
#: scikit-learn's digits count the set pixels of a 4×4 block.
DIGITS_WHITE = 16


class ExportError(ValueError):
    """A network cannot be exported; the message says which part, and why."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """The network takes (v − mean)/std; mean and std are (1,) or (features,) in float64.

    If ``white`` is None, v is the sample itself, any real numbers; else v is pixel/white for integer pixels from 0 to
    ``white``. ``bits`` are those of the fixed-point numbers that v is exported as, v·2^bits (0: whole numbers); None
    chooses them. Use ``Inputs.pixels`` and ``Inputs.real``.
    """

    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    white: int | None
    bits: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        if self.white is not None and not 1 <= self.white <= WHITE:
            raise ValueError(f"white must be an integer from 1 to {WHITE}, got {self.white}")
        if self.mean.ndim != 1 or self.mean.shape != self.std.shape:
            raise ValueError(f"mean and std must have equal lengths, got shapes {self.mean.shape} and {self.std.shape}")
        if not (np.isfinite(self.mean).all() and np.isfinite(self.std).all() and (self.std > 0).all()):
            raise ValueError("mean must be finite and std finite and > 0")

    @classmethod
    def pixels(cls, mean: ArrayLike, std: ArrayLike, white: int = WHITE) -> Inputs:
        """Integer pixels from 0 to ``white``; mean and std are of pixel/white, as in ``cavity.data.Dataset``."""
        return cls(_statistic(mean), _statistic(std), white)

    @classmethod
    def real(cls, mean: ArrayLike = 0.0, std: ArrayLike = 1.0, bits: ArrayLike | None = None) -> Inputs:
        """Any numbers, with mean and std in their own units; ``bits`` (one, or one per feature) of their fractions."""
        return cls(_statistic(mean), _statistic(std), None, None if bits is None else np.asarray(bits, np.int64))

    def check(self, features: int) -> None:
        if len(self.mean) not in (1, features):
            raise ExportError(f"inputs have mean and std of {len(self.mean)} features, the network takes {features}")


def _statistic(values: ArrayLike) -> NDArray[np.float64]:
    return np.atleast_1d(np.asarray(values, np.float64))


@dataclass(frozen=True, eq=False)
class Trained:
    """A network with everything needed to export it.

    ``features`` are the names of the columns of a table, or empty; ``image_shape`` is (channels, height, width), or
    None for a table. ``confidence``, ``tested`` (how many test samples exactly what is exported got right, and of how
    many), ``framing`` and ``directions`` (for learning on a device) come from data: see ``cavity.export.calibrated``,
    ``measured``, ``framed`` and ``steered``.
    """

    net: Network
    inputs: Inputs
    classes: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    image_shape: tuple[int, int, int] | None = None
    confidence: Confidence | None = None
    tested: tuple[int, int] | None = None
    framing: Framing | None = None
    directions: tuple[NDArray[np.int8], NDArray[np.int8]] | None = None

    @property
    def accuracy(self) -> float | None:
        """In percent, where it was measured."""
        return None if self.tested is None else 100 * self.tested[0] / self.tested[1]

    @classmethod
    def of(cls, run: Run, *, inputs: str | None = None) -> Trained:
        """The network of a run; give ``inputs`` ("pixels" or "real") if the run does not say what its samples were."""
        task = run.load_checkpoint().task
        assert task is not None
        kind = inputs or _kind(run, task.image_shape is not None)
        if kind not in KINDS:
            raise ValueError(f"inputs must be one of {', '.join(KINDS)}, got {kind!r}")
        mean, std = task.mean.double().numpy(), task.std.double().numpy()
        white = DIGITS_WHITE if split_name(run.config.dataset)[0] == "digits" else WHITE
        described = Inputs.pixels(mean, std, white) if kind == "pixels" else Inputs.real(mean, std)
        # Of shuffled pixels there is no image.
        shape = None if run.config.dataset.startswith(PERMUTED) else task.image_shape
        return cls(run.load_network(), described, task.classes, image_shape=shape)


def _kind(run: Run, images: bool) -> str:
    """Images are pixels, tables are real numbers; arrays of images may be either."""
    if not images:
        return "real"
    if Path(run.config.dataset).suffix.lower() == ".npz":
        raise ExportError(
            f"{run.path} was trained on images of an .npz file, which may be bytes or fractions: use --inputs pixels "
            "for integers from 0 to 255, or --inputs real"
        )
    return "pixels"


def require_exportable(net: Network, suffix: str = "", images: bool = False) -> None:
    """ExportError unless it is a ``Network`` of dense layers and sign units, or with ``images`` of convolutions and
    pools too; ``suffix`` ends the message on units."""
    if not isinstance(net, Network):
        raise ExportError(f"only networks trained by message passing can be exported, got a {type(net).__name__}")
    if net.front is not None:
        raise ExportError("the network begins with a whitening, whose filters are real numbers: it cannot be exported")
    for number, layer in enumerate(net.weighted()):
        if not images and not isinstance(layer.coupling, Dense):
            raise ExportError(
                f"layer {number} is {layer.coupling!r}: only dense layers can be exported with their uncertainty"
            )
    for number, activation in enumerate(net.activations):
        if not isinstance(activation, Sign):
            raise ExportError(
                f"activation {number} is {type(activation).__name__}: only sign activations can be exported{suffix}; "
                "train with activation sign"
            )
