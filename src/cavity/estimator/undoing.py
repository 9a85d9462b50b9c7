"""What a failed or interrupted fit leaves: the estimator as it was."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from cavity.core.channels import GaussianOutput
from cavity.core.network import Network

if TYPE_CHECKING:
    from cavity.estimator.base import MessagePassingEstimator

Fit = TypeVar("Fit", bound=Callable[..., Any])


def all_or_nothing(method: Fit) -> Fit:
    """A ``fit`` or ``partial_fit`` that fails, or is interrupted, leaves the estimator as it was."""

    @wraps(method)
    def wrapped(self: MessagePassingEstimator, *args: Any, **kwargs: Any) -> Any:
        attributes = dict(self.__dict__)
        # What is changed in place, not replaced.
        network, stream = attributes.get("network_"), copy.copy(attributes.get("stream_"))
        layers, noise = (None, None) if network is None else (network.snapshot(), _noise(network))
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            self.__dict__ = attributes
            if network is not None:
                attributes["stream_"] = stream
                network.go_back(layers)
                if noise is not None:
                    network.output.noise = noise
            raise

    return wrapped  # type: ignore[return-value]


def _noise(network: Network) -> float | None:
    """The variance that a regressor follows."""
    return network.output.noise if isinstance(network.output, GaussianOutput) else None
