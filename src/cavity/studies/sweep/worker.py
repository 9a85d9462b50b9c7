"""A process that trains one trial after another: ``python -m cavity.studies.sweep.worker``, for ``running.py``.

The parent first sends what all trials share, ``{"config": …, "validation": 287, "metric": …}``, then one complete
configuration for each trial. After each epoch ``{"epoch": 3, "value": 4.2}`` goes back (null if nothing was measured)
and is answered by true (go on) or false (stop); at the end ``{"seconds": 1.5}``, or ``{"error": …, "diverged": …}``.
With the metric "evidence" nothing is trained or held out, and there is one value.
"""

from __future__ import annotations

import math
import time
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cavity.runs.config import Config
from cavity.util.processes import Parent

if TYPE_CHECKING:
    from cavity.analysis.metrics import EpochRecord
    from cavity.data import Dataset
    from cavity.training.trainer import Trainer


def hold_out(dataset: Dataset, samples: int, seed: int) -> Dataset:
    """The training set alone, with ``samples`` of it, drawn by ``seed``, in the place of the test set.

    The samples stay standardised as the whole training set is; labels play no part in that. The draw is ours, not
    scikit-learn's: a sweep that is resumed must hold out the samples that it began with.
    """
    import torch

    order = torch.randperm(len(dataset.x_train), generator=torch.Generator().manual_seed(seed))
    validation, train = order[:samples], order[samples:]
    return replace(
        dataset,
        x_train=dataset.x_train[train],
        y_train=dataset.y_train[train],
        x_test=dataset.x_train[validation],
        y_test=dataset.y_train[validation],
    )


def answer(config: Config, dataset: Dataset, metric: str, parent: Parent) -> dict[str, Any]:
    """Train one trial, telling of each epoch, until the epochs are over or the parent says no; returns the last message
    about it."""
    from cavity.runs.noise import following
    from cavity.runs.training import make_trainer
    from cavity.training.callbacks import OnEpoch
    from cavity.training.writing import NonFiniteField

    def on_epoch(trainer: Trainer, record: EpochRecord) -> None:
        value = getattr(record, metric)
        if value is not None and not math.isfinite(value):
            raise NonFiniteField(f"{metric} became {value} in epoch {record.epoch}")
        parent.send({"epoch": record.epoch, "value": value})
        trainer.stop = not parent.receive()

    try:
        trainer = make_trainer(config, dataset, distributed=False)
        # Trials are there to be compared: the bad ones need no words.
        trainer.watch = False
        history = trainer.fit(
            (dataset.x_train, dataset.y_train),
            epochs=config.epochs,
            validation=(dataset.x_test, dataset.y_test),
            batch_size=config.batch_size,
            evaluate_every=config.evaluate_every or 1,
            callbacks=[*following(trainer.net, dataset.x_train, dataset.y_train), OnEpoch(on_epoch)],
        )
    except Exception as error:
        diverged = isinstance(error, NonFiniteField)
        if not diverged:
            traceback.print_exc()
        return {"error": str(error) or type(error).__name__, "diverged": diverged}
    return {"seconds": sum(record.seconds for record in history)}


def evidence(config: Config, dataset: Dataset, parent: Parent) -> dict[str, Any]:
    """Judge one trial by the evidence of the training set, without training; returns the last message about it."""
    from cavity.runs.entropy import evidence_of
    from cavity.runs.training import make_trainer

    started = time.perf_counter()
    net = make_trainer(config, dataset, distributed=False).net
    found = evidence_of(config, net, dataset.x_train.to(net.device), dataset.y_train.to(net.device))
    if found is None:
        return {"error": "message passing has not converged, so the evidence is not known", "diverged": True}
    parent.send({"epoch": config.epochs, "value": -found})
    parent.receive()
    return {"seconds": time.perf_counter() - started}


def main() -> None:
    parent = Parent()
    setup = parent.receive()

    import torch

    from cavity.runs.folder import load_data

    config = Config().replace(**setup["config"])
    torch.set_num_threads(config.threads or torch.get_num_threads())
    dataset = load_data(config)
    if setup["validation"]:
        dataset = hold_out(dataset, setup["validation"], config.data_seed)
    while True:
        trial = Config().replace(**parent.receive())
        if setup["metric"] == "evidence":
            parent.send(evidence(trial, dataset, parent))
        else:
            parent.send(answer(trial, dataset, setup["metric"], parent))


if __name__ == "__main__":
    main()
