"""Export of trained networks, with one bit per weight: C99, Arduino, one Python file, one page, NumPy or ONNX.

    run = cavity.runs.open_run("runs/first")
    trained, notes = cavity.export.of_run(run)                   # or Trained(net, Inputs.pixels(mean, std), classes)
    cavity.export.to_packed(trained, "net.cavity")               # cavity export runs/first --out net.cavity
    cavity.export.to_c(trained, "net.c")
    cavity.export.to_c(trained, "net.c", learn=cavity.export.Learn())    # the device goes on training it
    cavity.export.to_onnx(trained, "net.onnx", method="bayes")
    cavity.export.export(classifier, "net.html", calibrate=(X, y), test=(X_test, y_test)).accuracy

Importing this package is cheap: torch is imported when a name first needs it.
"""

from typing import TYPE_CHECKING

from cavity.util.lazy import lazy

if TYPE_CHECKING:
    from cavity.export.doors import Exported, export, of_run
    from cavity.export.formats import FORMATS
    from cavity.export.integers import describe
    from cavity.export.learning import Learn, learner, steered
    from cavity.export.on_data import calibrated, framed, measured
    from cavity.export.targets import to_arduino, to_c, to_html, to_onnx, to_packed, to_python
    from cavity.export.trained import ExportError, Inputs, Trained

__all__ = [
    "FORMATS",
    "ExportError",
    "Exported",
    "Inputs",
    "Learn",
    "Trained",
    "calibrated",
    "describe",
    "export",
    "framed",
    "learner",
    "measured",
    "of_run",
    "steered",
    "to_arduino",
    "to_c",
    "to_html",
    "to_onnx",
    "to_packed",
    "to_python",
]

_HOME = {
    "doors": ("Exported", "export", "of_run"),
    "formats": ("FORMATS",),
    "integers": ("describe",),
    "learning": ("Learn", "learner", "steered"),
    "on_data": ("calibrated", "framed", "measured"),
    "targets": ("to_arduino", "to_c", "to_html", "to_onnx", "to_packed", "to_python"),
    "trained": ("ExportError", "Inputs", "Trained"),
}

__getattr__, __dir__ = lazy(
    __name__, {name: f"cavity.export.{home}" for home, names in _HOME.items() for name in names}
)
