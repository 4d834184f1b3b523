"""Optimizers and learning-rate schedules."""

from graphc.base.lazy import known_as
from graphc.optim import lr_scheduler, swa_utils
from graphc.optim.adafactor import Adafactor
from graphc.optim.adagrad import Adadelta, Adagrad, RMSprop
from graphc.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam
from graphc.optim.asgd import ASGD
from graphc.optim.lbfgs import LBFGS
from graphc.optim.muon import Muon
from graphc.optim.optimizer import Optimizer
from graphc.optim.rprop import Rprop
from graphc.optim.sgd import SGD

__all__ = ["ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam"]
__all__ += ["Optimizer", "RAdam", "RMSprop", "Rprop", "lr_scheduler", "swa_utils"]

for _file in ("adadelta", "adamax", "adamw", "nadam", "radam", "rmsprop"):
    known_as(f"{__name__}.{_file}", __name__)
known_as(f"{__name__}.lr_scheduler", f"{__name__}.schedule", _LRScheduler=f"{__name__}.schedule:LRScheduler")
