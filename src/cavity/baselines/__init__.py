"""Methods to compare message passing with, on the same data and with the same interface and records."""

from cavity.baselines.bayesbinn import BayesBinaryNet, BayesBiNNTrainer
from cavity.baselines.binarynet import BinaryNet, BinaryNetTrainer
from cavity.baselines.classifier import Classifier
from cavity.baselines.elastic import ElasticTrainer
from cavity.baselines.expectation import ExpectationBackpropagation, ExpectationTrainer
from cavity.baselines.metaplastic import MetaplasticTrainer
from cavity.baselines.normalized import NormalizedBinaryNet, NormalizedTrainer
from cavity.baselines.perceptron import Perceptron, PerceptronTrainer
from cavity.baselines.trainer import BaselineTrainer

__all__ = [
    "BaselineTrainer",
    "BayesBiNNTrainer",
    "BayesBinaryNet",
    "BinaryNet",
    "BinaryNetTrainer",
    "Classifier",
    "ElasticTrainer",
    "ExpectationBackpropagation",
    "ExpectationTrainer",
    "MetaplasticTrainer",
    "NormalizedBinaryNet",
    "NormalizedTrainer",
    "Perceptron",
    "PerceptronTrainer",
]
