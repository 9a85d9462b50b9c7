"""Classes and probabilities, or numbers with error bars, of a run's network for new samples or its own test set.

    cavity predict runs/first --input new.csv --out predictions.csv
    cavity predict runs/first --input images/ --out predictions.npz

In Python: run = cavity.runs.open_run("runs/first")
           x, names = cavity.runs.read_samples("new.csv", run.load_checkpoint().task)
           run.load_network().predict_proba(x)
"""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cavity.cli.output import say, say_notes
from cavity.cli.parser import UsageError, add_data_changed
from cavity.util.files import FORCE_HELP, require_new_file, write_whole

if TYPE_CHECKING:
    from torch import Tensor

SUFFIXES = (".csv", ".npz")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run", metavar="RUN", help="a run's folder")
    kinds = ".npz with x, .csv or .parquet with a column per feature, a PNG image or a folder of them"
    add("--input", metavar="FILE", help=f"{kinds}; default: the run's own test set")
    add_data_changed(parser)
    add("--out", metavar="FILE", required=True, help="where the predictions go: .csv or .npz")
    add("--force", action="store_true", help=FORCE_HELP)


def run(args: argparse.Namespace) -> int:
    out = Path(args.out)
    if out.suffix.lower() not in SUFFIXES:
        raise ValueError(f"--out must end in {' or '.join(SUFFIXES)}, got {args.out}")
    require_new_file(out, args.force)
    import torch

    from cavity.analysis.metrics import class_index
    from cavity.runs.folder import open_run
    from cavity.runs.inputs import Numbers, Samples, read_samples
    from cavity.runs.matching import find_data

    opened = open_run(args.run)
    net, task = opened.load_network(), opened.load_checkpoint().task
    assert task is not None
    if args.input is None:
        found = find_data(opened, args.data_changed)
        say_notes(found.notes)
        samples = Samples(found.dataset.x_test, Numbers(len(found.dataset.x_test)))
    elif args.data_changed is not None:
        raise UsageError("--data-changed is about the run's own data: it does not go with --input")
    else:
        samples = read_samples(args.input, task)
    if task.target is not None:
        from cavity.runs.evaluation import predicted_numbers

        columns = predicted_numbers(net, samples.x, task.target)
        write_whole(out, (numbers_as_csv if out.suffix.lower() == ".csv" else numbers_as_npz)(samples.names, columns))
        say(f"{len(samples.x)} predictions in {out}")
        return 0
    with torch.no_grad():
        probabilities = net.predict_proba(samples.x)
        point = class_index(net, net.predict(samples.x))
    write = as_csv if out.suffix.lower() == ".csv" else as_npz
    write_whole(out, write(samples.names, probabilities, point, task.classes))
    say(f"{len(samples.x)} predictions in {out}")
    return 0


def as_csv(names: Sequence[str], probabilities: Tensor, point: Tensor, classes: Sequence[str]) -> bytes:
    """A row per sample: its name, the class of the posterior and of the most probable weights, P of each class."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["sample", "prediction", "pointwise", *(f"p({name})" for name in classes)])
    guesses = probabilities.argmax(dim=1).tolist()
    for name, guess, other, row in zip(names, guesses, point.tolist(), probabilities.tolist(), strict=True):
        writer.writerow([name, classes[guess], classes[other], *(f"{value:.6g}" for value in row)])
    return text.getvalue().encode()


def as_npz(names: Sequence[str], probabilities: Tensor, point: Tensor, classes: Sequence[str]) -> bytes:
    """Arrays sample, prediction and pointwise (class indices), probabilities (samples, classes) and classes."""
    import numpy as np

    stream = io.BytesIO()
    np.savez_compressed(
        stream,
        sample=np.array(names),
        prediction=probabilities.argmax(dim=1).numpy(),
        pointwise=point.numpy(),
        probabilities=probabilities.numpy(),
        classes=np.array(classes),
    )
    return stream.getvalue()


def numbers_as_csv(names: Sequence[str], columns: Mapping[str, Tensor]) -> bytes:
    """A row per sample: its name, the mean of the posterior, that of the most probable weights, and a standard
    deviation."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["sample", *columns])
    for name, *values in zip(names, *(column.tolist() for column in columns.values()), strict=True):
        writer.writerow([name, *(f"{value:.6g}" for value in values)])
    return text.getvalue().encode()


def numbers_as_npz(names: Sequence[str], columns: Mapping[str, Tensor]) -> bytes:
    """Arrays sample, prediction, pointwise and std."""
    import numpy as np

    stream = io.BytesIO()
    arrays: dict[str, Any] = {"sample": np.array(names), **{name: column.numpy() for name, column in columns.items()}}
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()
