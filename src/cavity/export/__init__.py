"""Export of trained networks, with one bit per weight, for NumPy, C99 or ONNX.

    run = cavity.runs.open_run("runs/first")
    trained = cavity.export.Trained.of(run)                      # or Trained(net, Inputs.pixels(mean, std), classes)
    cavity.export.to_packed(trained, "net.cavity")               # cavity export runs/first --format packed --out …
    cavity.export.to_c(trained, "net.c")
    cavity.export.to_onnx(trained, "net.onnx", method="bayes")

Importing this package is cheap: torch is imported when a name first needs it.
"""

from typing import TYPE_CHECKING

from cavity.util.lazy import lazy

if TYPE_CHECKING:
    from cavity.export.integers import describe
    from cavity.export.targets import to_c, to_onnx, to_packed
    from cavity.export.trained import ExportError, Inputs, Trained

__all__ = ["ExportError", "Inputs", "Trained", "describe", "to_c", "to_onnx", "to_packed"]

_HOME = {"describe": "integers", "ExportError": "trained", "Inputs": "trained", "Trained": "trained"}

__getattr__, __dir__ = lazy(__name__, {name: f"cavity.export.{_HOME.get(name, 'targets')}" for name in __all__})
