"""A run's folder: what is in it, and how to open it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cavity.data.registry import SOURCES, split_name
from cavity.runs.config import Config, free_weights, input_shape, output_units
from cavity.util.files import append_line, write_whole
from cavity.util.plain import from_json
from cavity.util.regular import read_regular
from cavity.util.text import shown

if TYPE_CHECKING:
    from cavity.analysis.metrics import EpochRecord
    from cavity.core.network import Network
    from cavity.data import Dataset
    from cavity.data.encoding import Encoding
    from cavity.data.fingerprint import Fingerprint
    from cavity.data.raw import Raw
    from cavity.runs.checkpoint import Checkpoint
    from cavity.runs.matching import Found

CONFIG, METRICS, CHECKPOINT, REPORT = "config.toml", "metrics.jsonl", "checkpoint.safetensors", "report.html"
#: What depends on the data, and is known once a run has begun.
COMPLETED = ("output", "batch_size")


@dataclass(frozen=True)
class Run:
    """A training run in a folder, finished or not."""

    path: Path
    config: Config

    @property
    def records(self) -> list[EpochRecord]:
        """What was measured after each epoch so far. A last line that a crash cut short does not count."""
        from cavity.analysis.metrics import EpochRecord

        file = self.path / METRICS
        content = read_regular(file) if os.path.lexists(file) else b""
        records: list[EpochRecord] = []
        for line in content.split(b"\n")[:-1]:
            try:
                records.append(EpochRecord.from_values(from_json(line)))
            except (ValueError, TypeError, RecursionError) as error:
                place = f"{file}: line {len(records) + 1}"
                raise ValueError(f"{place} is not a record of an epoch: {shown(error)}") from error
        return records

    @property
    def finished(self) -> bool:
        """Whether all epochs are done."""
        return len(self.records) >= self.config.epochs

    def load_checkpoint(self) -> Checkpoint:
        """The last checkpoint, verified."""
        from cavity.runs.checkpoint import CheckpointError, load_checkpoint

        file = self.path / CHECKPOINT
        if not os.path.lexists(file):
            raise FileNotFoundError(
                f"{self.path} has no checkpoint yet: it was stopped before the first one. Go on with "
                f"cavity train --resume {self.path}"
            )
        checkpoint = load_checkpoint(file)
        if checkpoint.task is None:
            raise CheckpointError(f"{file}: does not say what data it was trained on, so it is not one of a run")
        return checkpoint

    def load_network(self) -> Network:
        """The network as the last checkpoint has it, on the CPU."""
        from cavity.runs.building import build_network
        from cavity.runs.checkpoint import CheckpointError

        checkpoint = self.load_checkpoint()
        assert checkpoint.task is not None
        task, classes = checkpoint.task, len(checkpoint.task.classes)
        shape = input_shape(self.config, task.inputs, task.image_shape)
        wanted = free_weights(self.config, shape, classes)
        counted = (".field", "front.filters")
        stored = [tensor for name, tensor in checkpoint.network.items() if name.endswith(counted)]
        # Further weights would get no value, and their memory would be as large as anybody cared to write; so would
        # that of weights which a stranger wrote in fewer bytes than we do.
        held = sum(tensor.numel() for tensor in stored if tensor.is_floating_point() and tensor.element_size() >= 4)
        if wanted > held:
            raise CheckpointError(f"{checkpoint.path}: has {held} weights, {CONFIG} describes a network of {wanted}")
        net = build_network(self.config, shape, output_units(self.config.output, classes))
        checkpoint.restore(net)
        return net

    def load_dataset(self, *, data_changed: str | None = None) -> Dataset:
        """The data the run was trained on, standardised and labelled as for training.

        DataChanged where they have changed, unless ``data_changed`` says how to go on (``cavity.runs.matching``).
        """
        return self.find_data(data_changed).dataset

    def find_data(self, data_changed: str | None = None) -> Found:
        """The same, and what is to be said about them."""
        from cavity.runs.matching import find_data

        return find_data(self, data_changed)

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
    if not (folder / CONFIG).exists():
        what = "has no config.toml, so it is not a run" if folder.is_dir() else "is not a folder"
        raise FileNotFoundError(f"{folder} {what}; a run is the folder that cavity train --out wrote")
    config = Config.from_toml(folder / CONFIG)
    missing = ["hidden"] if config.architecture is None else []
    missing += [name for name in COMPLETED if getattr(config, name) is None]
    if missing:
        raise ValueError(f"{folder / CONFIG}: lacks {', '.join(missing)}, which every configuration of a run has")
    return Run(folder, config)


def load_data(config: Config, *, standardize: bool = True, encoding: Encoding | None = None) -> Dataset:
    """The data of ``config``; two classes become ±1 unless the output is an argmax."""
    return finished(config, read_data(config, encoding), standardize=standardize)


def read_data(config: Config, encoding: Encoding | None = None) -> Raw:
    """The data of ``config`` in the units of their source; ``encoding`` is what the columns of a table were given when
    a network was trained on it."""
    from cavity.data.loading import read
    from cavity.data.treatment import Treatment

    try:
        return read(
            config.dataset,
            data_dir=config.data_dir,
            seed=config.data_seed,
            test_fraction=config.test_fraction,
            label=config.label,
            table=Treatment(
                config.task, config.encode, config.impute, config.text or "", config.drop or "", fitted=encoding
            ),
            **(config.data_options or {}),
        )
    except TypeError as error:  # an option the data set does not have
        raise ValueError(str(error)) from error


def finished(config: Config, raw: Raw, *, standardize: bool = True, fingerprint: Fingerprint | None = None) -> Dataset:
    """What has been read as the run takes it, with its fingerprint (which may be known) unless it follows from the
    configuration alone."""
    from cavity.data.fingerprint import Fingerprint
    from cavity.data.loading import prepare

    task, seed = config.binary_task, config.data_seed
    loaded = prepare(raw, config.dataset, binary_task=task, standardize=standardize, seed=seed)
    if not is_generated(config.dataset):
        loaded = replace(loaded, fingerprint=fingerprint or Fingerprint.of(raw))
    if loaded.n_classes == 2 and not config.binary_task and config.output in (None, "label"):
        return replace(loaded, y_train=2 * loaded.y_train - 1, y_test=2 * loaded.y_test - 1)
    return loaded


def is_generated(dataset: str) -> bool:
    """Whether the data follow from options and a seed, up to how a machine rounds."""
    source = SOURCES.get(split_name(dataset)[0])
    return source is not None and source.generated
