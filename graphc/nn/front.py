"""Names of ``graphc.nn`` loaded together: layers, losses, containers, parameters."""

from graphc.base.lazy import collect
from graphc.nn.modules import *
from graphc.nn.parallel.data_parallel import *
from graphc.nn.parameter import *

collect(__name__)
