"""The metrics of a run for TensorBoard, an optional dependency."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cavity.training.callbacks import Callback

if TYPE_CHECKING:
    from cavity.analysis.metrics import EpochRecord
    from cavity.training.trainer import Trainer


def require_tensorboard() -> None:
    """Raise ImportError, with what to install, where TensorBoard is missing."""
    if find_spec("tensorboard") is None:
        raise ImportError("writing for TensorBoard needs tensorboard: pip install 'cavity[tensorboard]'")


class TensorBoard(Callback):
    """Writes each epoch's record as scalars below ``folder``; what is there from ``epoch`` + 1 on is taken back."""

    def __init__(self, folder: Path, epoch: int = 0) -> None:
        require_tensorboard()
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(folder), purge_step=epoch + 1)

    def close(self) -> None:
        self.writer.close()

    def on_epoch(self, trainer: Trainer, record: EpochRecord) -> None:
        for name, value in record.as_dict().items():
            if isinstance(value, list):
                for layer, number in enumerate(value):
                    self.writer.add_scalar(f"{name}/layer {layer}", number, record.epoch)
            elif name != "epoch" and value is not None:
                self.writer.add_scalar(name, value, record.epoch)
        self.writer.flush()
