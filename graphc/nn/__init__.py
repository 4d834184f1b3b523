"""Neural networks: Module, Parameter, layers, losses, functionals and initial values."""

from graphc.base.lazy import collect
from graphc.nn.modules import *
from graphc.nn.parallel.data_parallel import *
from graphc.nn.parameter import *

from . import attention, functional, init, modules, parallel, utils

collect(__name__, "attention", "functional", "init", "modules", "parallel", "utils")
