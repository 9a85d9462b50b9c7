"""From a run folder to the numbers of its page."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from cavity.analysis.calibration import reliability
from cavity.analysis.metrics import EpochRecord, measure
from cavity.core.channels import GaussianOutput
from cavity.core.layer import Layer
from cavity.core.network import Network
from cavity.data import DataError, DataNotFound, Dataset
from cavity.report import facts
from cavity.report.features import bound_of, feature_maps, first_layer
from cavity.report.settings import chosen
from cavity.report.summary import Bins, Example, FeatureMaps, LayerSummary, NumbersSummary, RunSummary, TestSummary
from cavity.runs.entropy import read_entropies
from cavity.runs.evaluation import evaluate_numbers, predicted_numbers
from cavity.runs.folder import Run
from cavity.runs.origin import read_origins

#: Bins of the histograms of magnetisations: an even number, so that 0 is an edge.
HISTOGRAM_BINS = 40
#: Numbers of more digits are rounded; config.toml has them all.
LONGEST_NUMBER = 9
#: Test samples in each gallery.
EXAMPLES = 12
#: A weight counts as committed when |m| is beyond this share of its bound.
COMMITTED = 0.9


def collect_all(runs: Sequence[Run], data_changed: str | None = None) -> list[RunSummary]:
    """One summary per run, named after its folder, or after its whole path where two folders have the same name.

    DataChanged where data are not those of the run, unless ``data_changed`` says how to go on.
    """
    if not runs:
        raise ValueError("runs must hold at least one run, got none")
    names = [run.path.resolve().name for run in runs]
    seen = Counter(names)
    titles = [name if seen[name] == 1 else str(run.path) for run, name in zip(runs, names, strict=True)]
    return [collect(run, name, data_changed) for run, name in zip(runs, titles, strict=True)]


def collect(run: Run, name: str, data_changed: str | None = None) -> RunSummary:
    """The numbers of one run. Without its data set there is less to show, and a note that says why."""
    data: Dataset | None = None
    try:
        found = run.find_data(data_changed)
        data, notes = found.dataset, found.notes
    except (DataError, DataNotFound) as error:
        notes = (f"Nothing could be measured on the test set because the data could not be read: {error}",)
    config, records = run.config, run.records
    summary = summarize(name, config, records, run.load_network(), data)
    try:
        origins = read_origins(run.path)
    except (ValueError, OSError) as error:
        origins, notes = [], (*notes, f"Where it was trained could not be read: {error}")
    return dataclasses.replace(
        summary,
        notes=(*notes, *summary.notes),
        facts=(*summary.facts, *facts.of_config(config, len(records)), *facts.of_origins(origins)),
        chosen=chosen(config, data),
        finished=len(records) >= config.epochs,
        entropies=read_entropies(run),
    )


def summarize(
    name: str, config: object, records: Sequence[EpochRecord], net: Network, dataset: Dataset | None
) -> RunSummary:
    """A summary from its parts; ``config`` is a dataclass, nested or not."""
    layers, percent = net.weighted(), not isinstance(net.output, GaussianOutput)
    test: TestSummary | None = None
    notes: tuple[str, ...] = ()
    maps: tuple[FeatureMaps, ...] = ()
    numbers: NumbersSummary | None = None
    try:
        test = _test(net, dataset) if dataset is not None and percent else None
        numbers = None if dataset is None or percent else _numbers(net, dataset)
        maps = feature_maps(net, dataset) if dataset is not None and percent else ()
    except FloatingPointError as error:
        notes = (f"Nothing could be measured on the test set: {error}.",)
    return RunSummary(
        name=name,
        data=None if dataset is None else dataset.name,
        config=tuple(config_rows(config)),
        records=tuple(records),
        percent=percent,
        layers=tuple(_layer(number, layer) for number, layer in enumerate(layers, start=1)),
        test=test,
        first_layer=first_layer(net, None if dataset is None else dataset.image_shape),
        notes=notes,
        facts=facts.of_network(net),
        maps=maps,
        numbers=numbers,
        map_images=() if dataset is None or not maps else _images(dataset, maps[0].indices),
    )


def _images(dataset: Dataset, indices: Sequence[int]) -> tuple[NDArray[np.uint8], ...]:
    """Test images as bytes; none where samples are no images."""
    if (shape := dataset.image_shape) is None:
        return ()
    return tuple(pixels(dataset.x_test[index], dataset.mean, dataset.std, shape) for index in indices)


def config_rows(config: object, prefix: str = "") -> list[tuple[str, str]]:
    """(dotted name, value as people write it) of every field of a dataclass."""
    rows = []
    if not dataclasses.is_dataclass(config):
        raise TypeError(f"config must be a dataclass, got {type(config).__name__}")
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            rows += config_rows(value, f"{prefix}{field.name}.")
        else:
            rows.append((prefix + field.name, _written(value)))
    return rows


def _written(value: object) -> str:
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and len(repr(value)) > LONGEST_NUMBER:
        return f"{value:.6g}"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_written(item)}" for key, item in value.items()) or "—"
    if isinstance(value, list | tuple):
        return ", ".join(map(_written, value)) or "—"
    return str(value)


def _layer(number: int, layer: Layer) -> LayerSummary:
    m = layer.mean if layer.mask is None else layer.mean[layer.mask]
    values = m.flatten().double().cpu().numpy()
    bound = bound_of(layer)
    reach = bound or float(np.abs(values).max()) or 1.0
    # Damping leaves means a rounding error beyond their bound, which a histogram would silently drop.
    counts, edges = np.histogram(np.clip(values, -reach, reach), HISTOGRAM_BINS, (-reach, reach))
    return LayerSummary(
        name=f"Layer {number}",
        kind=layer.prior.name,
        free_weights=values.size,
        bound=bound,
        edges=edges,
        shares=counts / values.size,
        committed=float((np.abs(values) > COMMITTED * (bound or 1.0)).mean()),
        polarization=float(np.square(values).mean()),
    )


def _test(net: Network, dataset: Dataset) -> TestSummary | None:
    """Predictions on the test set; None where there are no classes."""
    measured = measure(net, dataset.x_test, dataset.y_test)
    if measured.probabilities is None or measured.labels is None or measured.ece is None or measured.brier is None:
        return None
    probabilities, labels = measured.probabilities.double().cpu(), measured.labels.cpu()
    predicted, order, shape = probabilities.argmax(dim=1), by_certainty(probabilities), dataset.image_shape

    def examples(chosen: Tensor) -> tuple[Example, ...]:
        return tuple(
            Example(
                index=index,
                truth=dataset.classes[int(labels[index])],
                predicted=dataset.classes[int(predicted[index])],
                probability=float(probabilities[index].max()),
                pixels=None if shape is None else pixels(dataset.x_test[index], dataset.mean, dataset.std, shape),
            )
            for index in chosen[:EXAMPLES].tolist()
        )

    diagram = reliability(probabilities, labels)
    return TestSummary(
        samples=len(labels),
        classes=tuple(dataset.classes),
        confusion=measured.confusion(),
        bins=Bins((diagram.samples / len(labels)).numpy(), diagram.confidence.numpy(), diagram.accuracy.numpy()),
        ece=measured.ece,
        brier=measured.brier,
        most_certain=examples(order),
        least_certain=examples(order.flip(0)),
        certain_mistakes=examples(order[(predicted != labels)[order]]),
    )


def _numbers(net: Network, dataset: Dataset) -> NumbersSummary | None:
    """Predictions on the test set; None where there is none, or nobody knows the units of the labels."""
    if (target := dataset.target) is None or not len(dataset.x_test):
        return None
    (mean, scale), found = target, evaluate_numbers(net, dataset.x_test, dataset.y_test, target)
    predicted = predicted_numbers(net, dataset.x_test, target)
    return NumbersSummary(
        truth=(dataset.y_test.double() * scale + mean).cpu().numpy(),
        predicted=predicted["prediction"].cpu().numpy(),
        spread=predicted["std"].cpu().numpy(),
        rmse=found.rmse,
        rmse_bayes=found.rmse_bayes,
        r2=found.r2,
        coverage=found.coverage,
    )


def by_certainty(probabilities: Tensor) -> Tensor:
    """Indices of the samples (samples,) from the most to the least certain.

    The doubt 1 − max_k p_k is summed from the other classes: those keep their digits where p has rounded to 1.
    """
    others = probabilities.sort(dim=1, descending=True).values[:, 1:]
    return others.sum(dim=1).argsort(stable=True)


def pixels(x: Tensor, mean: Tensor, std: Tensor, shape: tuple[int, int, int]) -> NDArray[np.uint8]:
    """One standardised sample (features,) as bytes: (height, width, 3) of three channels, else (height, width)."""
    brightness = (x * std + mean).reshape(shape).double().cpu().numpy()
    image = np.moveaxis(brightness, 0, -1) if shape[0] == 3 else brightness.mean(axis=0)
    rounded: NDArray[np.uint8] = np.round(255 * np.clip(image, 0.0, 1.0)).astype(np.uint8)
    return rounded
