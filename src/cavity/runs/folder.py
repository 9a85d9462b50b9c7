"""A run's folder: what is in it, and how to open it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cavity.runs.config import Config
from cavity.runs.storage import append_line, write_whole

if TYPE_CHECKING:
    from cavity.data import Dataset
    from cavity.metrics import EpochRecord
    from cavity.network import Network
    from cavity.runs.checkpoint import Checkpoint

CONFIG, METRICS, CHECKPOINT, REPORT = "config.toml", "metrics.jsonl", "checkpoint.safetensors", "report.html"


@dataclass(frozen=True)
class Run:
    """A training run in a folder, finished or not."""

    path: Path
    config: Config

    @property
    def records(self) -> list[EpochRecord]:
        """What was measured after each epoch so far. A last line that a crash cut short does not count."""
        from cavity.metrics import EpochRecord

        file = self.path / METRICS
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        whole = text[: text.rfind("\n") + 1].splitlines()
        try:
            return [EpochRecord(**json.loads(line)) for line in whole]
        except (ValueError, TypeError) as error:
            raise ValueError(f"{file}: line {len(whole)} or one before it is no record of an epoch: {error}") from error

    @property
    def finished(self) -> bool:
        """Whether all epochs are done."""
        return len(self.records) >= self.config.epochs

    def load_checkpoint(self) -> Checkpoint:
        """The last checkpoint, verified."""
        from cavity.runs.checkpoint import load_checkpoint

        file = self.path / CHECKPOINT
        if not file.exists():
            raise FileNotFoundError(
                f"{self.path} has no checkpoint yet: it was stopped before the first one. Go on with "
                f"cavity train --resume {self.path}"
            )
        return load_checkpoint(file)

    def load_network(self) -> Network:
        """The network as the last checkpoint has it, on the CPU."""
        checkpoint = self.load_checkpoint()
        assert checkpoint.task is not None
        net = build_network(self.config, checkpoint.task.inputs, len(checkpoint.task.classes))
        checkpoint.restore(net)
        return net

    def load_dataset(self) -> Dataset:
        """The data the run was trained on, standardised and labelled as for training."""
        return load_data(self.config)

    def write_config(self) -> None:
        write_whole(self.path / CONFIG, self.config.to_toml().encode())

    def write_records(self, records: list[EpochRecord]) -> None:
        """Replace ``metrics.jsonl``: what it holds beyond a checkpoint would be there twice after resuming."""
        write_whole(self.path / METRICS, "".join(line(record) + "\n" for record in records).encode())

    def append_record(self, record: EpochRecord) -> None:
        append_line(self.path / METRICS, line(record))


def line(record: EpochRecord) -> str:
    """One line of ``metrics.jsonl``."""
    return json.dumps(record.as_dict())


def open_run(path: str | os.PathLike[str]) -> Run:
    """The run in a folder; FileNotFoundError where there is none."""
    folder = Path(path)
    if not (folder / CONFIG).is_file():
        what = "has no config.toml, so it is no run" if folder.is_dir() else "is no folder"
        raise FileNotFoundError(f"{folder} {what}; a run is the folder that cavity train --out wrote")
    return Run(folder, Config.from_toml(folder / CONFIG))


def build_network(config: Config, inputs: int, classes: int) -> Network:
    """The network that ``config``, complete, describes, for samples of ``inputs`` features in ``classes`` classes."""
    from cavity.channels import ArgMax, Label
    from cavity.network import mlp

    assert config.hidden is not None
    assert config.output is not None
    methods = {"argmax": "pairwise", "argmax-sampled": "sampled", "argmax-exact": "exact"}
    is_label = config.output == "label"
    return mlp(
        inputs,
        config.hidden,
        1 if is_label else classes,
        weights=config.weights,
        activation=config.activation,
        output=Label() if is_label else ArgMax(methods[config.output]),  # type: ignore[arg-type]
        bias=config.bias,
        density=config.density,
        init=config.init,
        seed=config.seed,
    )


def load_data(config: Config, *, standardize: bool = True) -> Dataset:
    """The data of ``config``; two classes become ±1 unless the output is an argmax."""
    from cavity import data

    try:
        loaded = data.load(
            config.dataset,
            binary_task=config.binary_task,
            data_dir=config.data_dir,
            standardize=standardize,
            seed=config.data_seed,
            test_fraction=config.test_fraction,
            label=config.label,
            **(config.data_options or {}),
        )
    except TypeError as error:  # an option the data set does not have
        raise ValueError(str(error)) from error
    if loaded.n_classes == 2 and not config.binary_task and config.output in (None, "label"):
        return replace(loaded, y_train=2 * loaded.y_train - 1, y_test=2 * loaded.y_test - 1)
    return loaded
