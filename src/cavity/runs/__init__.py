"""Training runs that live in a folder: ``config.toml``, ``metrics.jsonl``, ``sessions.jsonl`` (when, where and with
what versions it was trained), ``checkpoint.safetensors``, ``report.html``.

    run = cavity.runs.train(cavity.runs.Config(dataset="digits", epochs=30), "runs/first")   # cavity train
    run = cavity.runs.resume("runs/first")                                                  # cavity train --resume
    run = cavity.runs.open_run("runs/first")
    run.records[-1].test_error, run.load_network().predict_proba(run.load_dataset().x_test)

Importing this package is cheap: torch is imported with the first name that needs it.
"""

from typing import TYPE_CHECKING

from cavity.util.lazy import lazy

if TYPE_CHECKING:
    from cavity.runs.checkpoint import Checkpoint, CheckpointError, SaveCheckpoint, load_checkpoint, save_checkpoint
    from cavity.runs.config import Config
    from cavity.runs.evaluation import Evaluation, evaluate
    from cavity.runs.folder import Run, open_run
    from cavity.runs.inputs import read_samples
    from cavity.runs.training import resume, train

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "Config",
    "Evaluation",
    "Run",
    "SaveCheckpoint",
    "evaluate",
    "load_checkpoint",
    "open_run",
    "read_samples",
    "resume",
    "save_checkpoint",
    "train",
]

_HOME = {
    "cavity.runs.checkpoint": ("Checkpoint", "CheckpointError", "SaveCheckpoint", "load_checkpoint", "save_checkpoint"),
    "cavity.runs.config": ("Config",),
    "cavity.runs.evaluation": ("Evaluation", "evaluate"),
    "cavity.runs.folder": ("Run", "open_run"),
    "cavity.runs.inputs": ("read_samples",),
    "cavity.runs.training": ("resume", "train"),
}

__getattr__, __dir__ = lazy(__name__, {name: home for home, names in _HOME.items() for name in names})
