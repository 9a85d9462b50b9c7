"""Training a run: from a configuration to a folder, and on from where it was stopped.

run = train(Config(dataset="fashion-mnist", algorithm="mf", epochs=3), "runs/fashion")
run = resume("runs/fashion", epochs=5)
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from cavity.data import names
from cavity.data.registry import split_name
from cavity.engine.distributed import Team, join
from cavity.runs.building import build_network, build_trainer
from cavity.runs.checkpoint import AnyPath
from cavity.runs.config import Config, completed, input_shape, output_units
from cavity.runs.entropy import ENTROPY
from cavity.runs.folder import CHECKPOINT, CONFIG, METRICS, REPORT, Run, load_data, open_run
from cavity.runs.matching import find_data
from cavity.runs.origin import SESSIONS
from cavity.runs.session import FREE, Session
from cavity.training.callbacks import Callback
from cavity.training.trainer import Trainer
from cavity.util.files import held_names, new_folder, only_writer, require_free
from cavity.util.paths import expanded
from cavity.util.text import shown
from cavity.util.threads import threads_for

if TYPE_CHECKING:
    from cavity.data import Dataset

#: Where runs go that were given no folder.
RUNS = Path("runs")
TENSORBOARD = "tensorboard"


def start(config: Config, out: AnyPath | None = None, *, force: bool = False, distributed: bool = False) -> Session:
    """A new run in ``out``, by default a new folder below ``runs/``.

    Without ``force``, ``out`` must be free, or hold the same run, killed before it kept anything of its training.

    ``distributed`` is for all processes that torchrun started; they must be given ``out``. When torchrun has started
    them again, the run that they had begun goes on.
    """
    team = join() if distributed else None
    if team is not None and out is None:
        raise ValueError("several processes train one run: out must say in which folder (--out RUN)")
    again, leads = team is not None and team.restarted(), team is None or team.leads
    if out is not None and not again and leads:
        _require_free(Path(out), force)
    config = with_absolute_paths(config)
    with _one_downloads(team):
        dataset = load_data(config)
    sizes = len(dataset.x_train), len(dataset.x_test), dataset.n_features, dataset.n_classes
    config = completed(config, *sizes, dataset.image_shape)
    config = config.replace(device=str(usable_device(config.device)))
    trainer = make_trainer(config, dataset, distributed)
    # By the size of the problem alone, not by what else is running: a run must end with the same weights every time.
    most = torch.get_num_threads()
    worth = threads_for((config.batch_size or sizes[0]) * trainer.net.products, most, most)
    config = config.replace(threads=config.threads or worth)
    folder = new_folder(RUNS, f"{shown(Path(config.dataset).stem)}-{config.algorithm}") if out is None else Path(out)
    run = Run(folder, config)
    if leads and not (again and _is_begun(run)):
        folder.mkdir(parents=True, exist_ok=True)
        with only_writer(folder):
            # Once more: loading takes a while, in which another process may have begun.
            _require_free(folder, force, run)
            _clear(folder)
            run.write_config()
    if team is not None:
        team.wait()
    return Session(run, dataset, trainer)


def _is_begun(run: Run) -> bool:
    """Whether its folder holds a run of the same configuration."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        return not run.config.differing(open_run(run.path).config.as_dict(), but=FREE)
    return False


def reopen(
    path: AnyPath, *, epochs: int | None = None, data_dir: str | None = None, distributed: bool = False
) -> Session:
    """The run in ``path``, to go on; ``epochs`` moves its end, ``data_dir`` says where its data are now."""
    team = join() if distributed else None
    run = open_run(path)
    changes = {"epochs": epochs, "data_dir": data_dir}
    changed = run.config.replace(**{name: value for name, value in changes.items() if value is not None})
    run = Run(run.path, with_absolute_paths(changed))
    with _one_downloads(team):
        found = find_data(run, training=True)
    return Session(run, found.dataset, make_trainer(run.config, found.dataset, distributed), found.notes)


def _one_downloads(team: Team | None) -> AbstractContextManager[None]:
    """Of several processes the first loads data before the others do."""
    return contextlib.nullcontext() if team is None else team.leader_first()


def train(
    config: Config,
    out: AnyPath | None = None,
    *,
    force: bool = False,
    callbacks: Sequence[Callback] = (),
    checkpoint_seconds: float = 30.0,
    distributed: bool = False,
) -> Run:
    """``cavity train``: train a new run and return it."""
    return start(config, out, force=force, distributed=distributed).fit(callbacks, checkpoint_seconds)


def resume(
    path: AnyPath,
    *,
    epochs: int | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint_seconds: float = 30.0,
    distributed: bool = False,
) -> Run:
    """``cavity train --resume``: end with exactly the weights of a run that was never stopped."""
    return reopen(path, epochs=epochs, distributed=distributed).fit(callbacks, checkpoint_seconds)


def make_trainer(config: Config, dataset: Dataset, distributed: bool) -> Trainer:
    """A fresh network for the data, and its trainer."""
    device = usable_device(config.device)
    device = join().device(device) if distributed else device
    shape = input_shape(config, dataset.n_features, dataset.image_shape)
    net = build_network(config, shape, output_units(config.output, dataset.n_classes))
    return build_trainer(config, net.to(device), distributed=distributed)


def usable_device(name: str | None) -> torch.device:
    """The device of that name, or the best there is; an error where it cannot hold a number."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.zeros(1, device=name).device
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(f"device {name!r} cannot be used here: {str(error).splitlines()[0]}") from error
    if device.type == "meta":
        raise ValueError("device 'meta' cannot be used here: it holds shapes and no numbers")
    return device


def with_absolute_paths(config: Config) -> Config:
    """Paths that mean the same from everywhere, so that the written configuration does."""
    if split_name(config.dataset)[0] not in names():
        # A path that does not exist is left as it was written, for the error message.
        path = expanded(config.dataset)
        config = config.replace(dataset=str(path.resolve())) if path.exists() else config
    if config.data_dir is not None:
        config = config.replace(data_dir=str(expanded(config.data_dir).resolve()))
    return config


def _require_free(folder: Path, force: bool, run: Run | None = None) -> None:
    """FileExistsError unless ``force``, or there is nothing but the beginning of the same ``run``, if that is known."""
    if folder.is_dir() and (force or (_keeps_nothing(folder) and (run is None or _is_begun(run)))):
        return
    require_free(folder, CONFIG, "choose another --out, or overwrite it with --force")


def _keeps_nothing(folder: Path) -> bool:
    """Whether a run was killed before its first checkpoint: there is no record, and at most a configuration
    and where it began."""
    metrics = folder / METRICS
    return held_names(folder) <= {CONFIG, METRICS, SESSIONS} and not (metrics.is_file() and metrics.stat().st_size)


def _clear(folder: Path) -> None:
    """Remove what an earlier run left; the checkpoint first, so that it is never beside a configuration not its own."""
    for name in (CHECKPOINT, METRICS, SESSIONS, REPORT, ENTROPY, CONFIG):
        (folder / name).unlink(missing_ok=True)
    board = folder / TENSORBOARD
    # rmtree opens whatever it is given, and would wait for a pipe.
    if board.is_dir() and not board.is_symlink():
        shutil.rmtree(board, ignore_errors=True)
