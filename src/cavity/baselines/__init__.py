"""What message passing is compared with: the same data, the same interface, the same records."""

from cavity.baselines.binarynet import BinaryNet, BinaryNetTrainer
from cavity.baselines.classifier import Classifier
from cavity.baselines.trainer import BaselineTrainer

__all__ = ["BaselineTrainer", "BinaryNet", "BinaryNetTrainer", "Classifier"]
