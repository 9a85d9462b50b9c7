"""A process that trains one trial after another: ``python -m cavity.studies.sweep.worker``, for ``workers.py``.

Messages are lines of JSON. The first on stdin says what is the same for all trials, ``{"config": …, "validation": 287,
"metric": "test_error"}``; each that follows is the configuration of a trial, complete. After each of its epochs goes
out ``{"epoch": 3, "value": 4.2}`` (null where nothing was measured), to be answered by ``go`` or ``stop``; in the end
``{"seconds": 1.5}``, or ``{"error": …, "diverged": …}``.
"""

from __future__ import annotations

import json
import math
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cavity.runs.config import Config
from cavity.util.processes import lines_from_parent

if TYPE_CHECKING:
    from cavity.analysis.metrics import EpochRecord
    from cavity.data import Dataset
    from cavity.training.trainer import Trainer

GO, STOP = "go", "stop"


def hold_out(dataset: Dataset, samples: int, seed: int) -> Dataset:
    """The training set alone, with ``samples`` of it, drawn by ``seed``, in the place of the test set.

    What standardises the samples stays that of the whole training set; no label has a part in it.
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


def train(config: Config, dataset: Dataset, goes_on: Callable[[EpochRecord], bool]) -> float:
    """Train until the epochs are over, or until ``goes_on`` says no to the record of one; returns its seconds."""
    from cavity.runs.training import make_trainer
    from cavity.training.callbacks import OnEpoch

    def on_epoch(trainer: Trainer, record: EpochRecord) -> None:
        trainer.stop = not goes_on(record)

    trainer = make_trainer(config, dataset, distributed=False)
    trainer.fit(
        (dataset.x_train, dataset.y_train),
        epochs=config.epochs,
        validation=(dataset.x_test, dataset.y_test),
        batch_size=config.batch_size,
        evaluate_every=config.evaluate_every or 1,
        callbacks=[OnEpoch(on_epoch)],
    )
    return sum(record.seconds for record in trainer.history)


def answer(config: Config, dataset: Dataset, metric: str, receive: Callable[[], str]) -> dict[str, Any]:
    """Train one trial, telling of each epoch; returns the last message about it."""
    from cavity.training.trainer import NonFiniteField

    def goes_on(record: EpochRecord) -> bool:
        value = getattr(record, metric)
        if value is not None and not math.isfinite(value):
            raise NonFiniteField(f"{metric} became {value} in epoch {record.epoch}")
        send({"epoch": record.epoch, "value": value})
        return receive() == GO

    try:
        return {"seconds": train(config, dataset, goes_on)}
    except Exception as error:
        diverged = isinstance(error, NonFiniteField)
        if not diverged:
            traceback.print_exc()
        return {"error": str(error) or type(error).__name__, "diverged": diverged}


def send(message: dict[str, Any]) -> None:
    print(json.dumps(message), file=sys.stdout, flush=True)


def main() -> None:
    # Ctrl-C reaches all processes of a terminal: the one that started this one decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    receive = lines_from_parent().get
    setup = json.loads(receive())

    import torch

    from cavity.runs.folder import load_data

    config = Config().replace(**setup["config"])
    torch.set_num_threads(config.threads or torch.get_num_threads())
    dataset = hold_out(load_data(config), setup["validation"], config.data_seed)
    while True:
        trial = Config().replace(**json.loads(receive()))
        send(answer(trial, dataset, setup["metric"], receive))


if __name__ == "__main__":
    main()
