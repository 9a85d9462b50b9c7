"""Whether the data of a run are still those that it was trained on, and how to go on where they are not.

A table that has grown is split anew, and most of its test samples may have been trained on: nothing measured on them
would be true. So changed data are refused, with what has changed. Two ways on are honest:

    original   the samples of the original test set (or training set) that are still there
    unseen     all samples that the network was not trained on, those of the original test set and new ones
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from cavity.data.fingerprint import Fingerprint, as_before, original, unseen
from cavity.runs.folder import CHECKPOINT, CONFIG, Run, finished, is_generated, load_data, read_data
from cavity.util.text import shown

if TYPE_CHECKING:
    from cavity.data import Dataset
    from cavity.data.raw import Raw
    from cavity.runs.task import Task

WAYS = {"original": original, "unseen": unseen}
#: Options of generated data, which have no fingerprint: they are a matter of rounding.
OF_DATA = ("dataset", "binary_task", "data_seed", "data_options", "test_fraction", "label")


class DataChanged(ValueError):
    """The data of a run are not those that it was trained on."""


@dataclass(frozen=True)
class Found:
    """The data of a run, and what is to be said about them."""

    dataset: Dataset
    notes: tuple[str, ...] = ()


def find_data(run: Run, data_changed: str | None = None, *, training: bool = False) -> Found:
    """The data of a run as it was trained on them; of changed data what ``data_changed`` asks for.

    DataChanged without it, and always for ``training``, which cannot go on with other data.
    """
    if data_changed not in (None, *WAYS):
        raise ValueError(f"data_changed must be one of {', '.join(WAYS)}, got {data_changed!r}")
    task = run.load_checkpoint().task if os.path.lexists(run.path / CHECKPOINT) else None
    raw = read_data(run.config, None if task is None else task.encoding)
    if task is None:  # nothing has been learnt yet
        return Found(finished(run.config, raw))
    if is_generated(run.config.dataset):
        return Found(_generated(run, raw))
    _require_inputs(run, raw, task)
    before = task.fingerprint
    if before is None:
        note = "it cannot be told whether the data are those of the run, which an older version began"
        dataset = finished(run.config, raw)
        if dataset.n_classes != len(task.classes):
            changes = f"{dataset.n_classes} classes where there were {len(task.classes)}"
            raise DataChanged(f"{shown(run.config.dataset)}: the data of {run.path} have changed: {changes}")
        return Found(dataset, (note,))
    now = Fingerprint.of(raw)
    if before.equals(now):
        return Found(finished(run.config, raw, fingerprint=now))
    ordered = as_before(raw, now, before)
    if ordered is not None:
        note = "the samples are in another order or in other parts than in training; they are taken as they were"
        return Found(finished(run.config, ordered, fingerprint=before), (note,))
    changes = ", ".join(before.differences(now))
    if data_changed is None or training:
        raise DataChanged(
            f"{shown(run.config.dataset)}: the data of {run.path} have changed: {changes}. {_ways(run, training)}"
        )
    chosen = _relabelled(WAYS[data_changed](raw, now, before), before)
    dataset = in_units_of(task, finished(run.config, chosen, standardize=False))
    if len(dataset.x_test) == 0:
        raise DataChanged(f"{shown(run.config.dataset)}: holds no sample that is {data_changed} ({changes})")
    what = "the samples of the original test set that are still there"
    what = what if data_changed == "original" else "all samples that were not trained on"
    return Found(dataset, (f"the data have changed: {changes}. The test set is {what}: {len(dataset.x_test)}",))


def _ways(run: Run, training: bool) -> str:
    if training:
        anew = f"cavity train --config {run.path / CONFIG} --out RUN"
        return f"Training cannot go on with other data: put them back, or train a new run on them: {anew}"
    kept = "--data-changed original for what is left of the original test set"
    return f"Put them back, or use {kept}, or --data-changed unseen for all samples that were not trained on"


def _generated(run: Run, raw: Raw) -> Dataset:
    """Generated data are tied by the options that the checkpoint has."""
    for name in run.config.differing(run.load_checkpoint().config):
        if name in OF_DATA:
            raise DataChanged(f"{run.path / CONFIG}: {name} is not what the network was trained with: put it back")
    return finished(run.config, raw)


def _require_inputs(run: Run, raw: Raw, task: Task) -> None:
    found = raw.train.x.shape[1]
    if found != task.inputs:
        raise DataChanged(
            f"{shown(run.config.dataset)}: the data of {run.path} have changed: {found} features where there were "
            f"{task.inputs}; the network takes no others"
        )


def _relabelled(raw: Raw, before: Fingerprint) -> Raw:
    """Class indices as they were; a class that the network does not know is an error."""
    if not raw.classes and not before.classes:
        return raw
    places = {name: place for place, name in enumerate(before.classes)}
    known = np.array([places.get(name, -1) for name in raw.classes])
    train, test = (replace(part, y=known[part.y]) for part in (raw.train, raw.test))
    if strange := int((train.y < 0).sum() + (test.y < 0).sum()):
        raise DataChanged(f"{shown(raw.name)}: {strange} samples are of classes that the network does not know")
    return replace(raw, train=train, test=test, classes=before.classes)


def in_units_of(task: Task, data: Dataset) -> Dataset:
    """Data that were not standardised, with the mean and std that the network was trained with."""
    data = replace(data, x_train=task.standardize(data.x_train), x_test=task.standardize(data.x_test))
    if task.target is None or data.target is None:
        return data
    (mean, std), (own_mean, own_std) = task.target, data.target
    y_train, y_test = ((y * own_std + own_mean - mean) / std for y in (data.y_train, data.y_test))
    return replace(data, y_train=y_train, y_test=y_test, target=task.target)


def load_other(run: Run, dataset: str, label: str | None = None, data_dir: str | None = None) -> Dataset:
    """Another data set, or own file or folder, in the run's own standardisation; ValueError if its features or classes
    are not as many."""
    task = run.load_checkpoint().task
    assert task is not None
    config = run.config if data_dir is None else run.config.replace(data_dir=data_dir)
    if label is None and task.encoding is not None and dataset.lower().endswith((".csv", ".parquet")):
        label = task.encoding.label  # only tables have a label column
    others = config.replace(dataset=dataset, label=label, data_options=None)
    data = load_data(others, standardize=False, encoding=task.encoding)
    if data.n_features != task.inputs or data.n_classes != len(task.classes):
        raise ValueError(
            f"{dataset} has {data.n_features} features in {data.n_classes} classes, the run was trained on "
            f"{task.inputs} in {len(task.classes)}"
        )
    return in_units_of(task, data)


def trained_on(task: Task, data: Dataset, part: str) -> int:
    """How many samples of a part the network was trained on, as far as it is known."""
    if task.fingerprint is None or data.fingerprint is None:
        return 0
    rows = data.fingerprint.test.rows if part == "test" else data.fingerprint.train.rows
    return int(np.isin(rows, task.fingerprint.train.rows).sum())
