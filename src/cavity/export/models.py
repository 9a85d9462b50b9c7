"""What can be exported, and how it becomes a ``Trained``: a run, a fitted estimator, a network, or one already."""

from __future__ import annotations

from typing import Protocol, TypeAlias, runtime_checkable

from cavity.core.network import Network
from cavity.export.trained import ExportError, Inputs, Trained
from cavity.runs.folder import Run


@runtime_checkable
class Exportable(Protocol):
    """What knows how it is exported: estimators do."""

    def trained_network(self) -> Trained: ...


Model: TypeAlias = Trained | Run | Network | Exportable


def as_trained(model: Model) -> Trained:
    """The network to export with its inputs; those of a bare network are standardised already."""
    if isinstance(model, Trained):
        return model
    if isinstance(model, Run):
        return Trained.of(model)
    if isinstance(model, Network):
        return Trained(model, Inputs.real())
    if isinstance(model, Exportable):
        return model.trained_network()
    raise ExportError(
        f"only a cavity.export.Trained, a run, a fitted classifier or a cavity.Network can be exported, got a "
        f"{type(model).__name__}"
    )
