"""One way to export anything: a run, a fitted estimator or a network; with data for its confidence and its accuracy.

done = export(run, "net.py", calibrate=(x, y), test=(x_test, y_test))
done.files, done.accuracy
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from cavity.data.errors import DataError
from cavity.export.formats import FORMATS, writer
from cavity.export.learning import steered
from cavity.export.models import Model, as_trained
from cavity.export.on_data import COVERAGE, calibrated, framed, measured, part_of
from cavity.export.targets import AnyPath, Method
from cavity.export.trained import Trained
from cavity.runs.matching import DataChanged, find_data, load_other
from cavity.util.text import nearest

if TYPE_CHECKING:
    from cavity.packed.confidence import Confidence
    from cavity.runs.folder import Run

Pair = tuple[ArrayLike, ArrayLike]


@dataclass(frozen=True)
class Exported:
    """The files that were written, and what is known of the network in them: accuracy in percent and confidence, where
    there were data for them."""

    files: list[Path]
    accuracy: float | None
    confidence: Confidence | None


def format_of(path: AnyPath, name: str | None = None) -> str:
    """The format by its ``name``, or by how the path ends."""
    if name is None:
        found = [each for each, kind in FORMATS.items() if kind.suffix and Path(path).suffix == kind.suffix]
        if not found:
            endings = ", ".join(kind.suffix for kind in FORMATS.values() if kind.suffix)
            raise ValueError(f"format must be given where the path ends in none of {endings}, got {path}")
        return found[0]
    if name not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {name!r}{nearest(name, FORMATS)}")
    return name


def export(
    model: Model,
    path: AnyPath,
    format: str | None = None,
    *,
    calibrate: Pair | None = None,
    test: Pair | None = None,
    coverage: float = COVERAGE,
    force: bool = False,
    **options: Any,
) -> Exported:
    """Write a network.

    Args:
        model: a ``Trained``, a run, a fitted classifier, or a network of standardised inputs.
        path: the file, or for ``arduino`` the folder.
        format: one of ``FORMATS``; None means by the path's ending.
        calibrate: samples as the exported network takes them and their class indices, for its confidence; samples that
            it was not trained on are best.
        test: the same, for the accuracy of exactly what is exported.
        coverage: the share of the samples in ``calibrate`` whose class is not refused.
        force: overwrite what is there.
        options: ``prefix`` (c and arduino), ``learn`` (c; the samples of ``calibrate`` are then what must not be
            forgotten) or ``method`` (onnx: "point" or "bayes").
    """
    name = format_of(path, format)
    kind = FORMATS[name]
    if wrong := sorted(set(options) - set(kind.options)):
        raise ValueError(f"{wrong[0]} does not go with format {format_of(path, format)}")
    trained = as_trained(model)
    method: Method = options.get("method", "point")
    if calibrate is not None:
        trained = calibrated(framed(trained, calibrate[0]), *calibrate, coverage)
        if options.get("learn") is not None:
            trained = steered(trained, calibrate[0])
    if test is not None:
        trained = measured(trained, *test, method)
    files = writer(name)(trained, path, force=force, **options)
    return Exported(files, trained.accuracy, trained.confidence)


def of_run(
    run: Run,
    *,
    inputs: str | None = None,
    calibrate: str | None = None,
    label: str | None = None,
    coverage: float = COVERAGE,
    method: Method = "point",
    learn: bool = False,
) -> tuple[Trained, tuple[str, ...]]:
    """The network of a run with a confidence and its accuracy on the run's test set, and what is to be said about them.

    The confidence is fitted on the data set or file ``calibrate`` (all of it), or else on the run's own training set,
    which also says what must not be forgotten by a device that goes on to ``learn``. A run whose data are gone or have
    changed is exported without what they would tell.
    """
    trained = Trained.of(run, inputs=inputs)
    notes: tuple[str, ...] = ()
    given = None if calibrate is None else part_of(trained, load_other(run, calibrate, label), "all")
    try:
        own = find_data(run)
    except (DataError, DataChanged, OSError) as error:
        lost = "accuracy" if calibrate else "accuracy and confidence"
        own, notes = None, (f"exported without {lost}, because the run's data cannot be had: {error}",)
    if own is not None:
        trained, notes = replace(trained, features=own.dataset.features), own.notes
        seen = part_of(trained, own.dataset, "train")
        trained = measured(framed(trained, seen.x), *part_of(trained, own.dataset, "test"), method)
        trained = steered(trained, seen.x) if learn else trained
    if method == "bayes":  # has probabilities of its own
        return trained, notes
    if given is not None:
        trained = calibrated(trained, *given, coverage)
    elif own is not None:
        trained = calibrated(trained, *seen, coverage, seen=True)
    return trained, notes
