"""Optimizers and learning-rate schedules."""

from graphc.optim import lr_scheduler
from graphc.optim.adagrad import Adagrad
from graphc.optim.adam import Adam, AdamW
from graphc.optim.optimizer import Optimizer
from graphc.optim.rmsprop import RMSprop
from graphc.optim.sgd import SGD

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler"]
