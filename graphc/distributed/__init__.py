"""Data-parallel processes: ``mpiexec -n 4 python train.py``, where the script calls ``init()``.

Collectives take tensors, have gradients, and work in compiled code. Without a launcher, the same script runs as one
process. See docs/distributed.md.
"""

from graphc.base.lazy import collect, known_as
from graphc.distributed.collectives import *
from graphc.distributed.group import *
from graphc.distributed.spans import *

collect(__name__)

known_as(f"{__name__}.optim", "graphc.optim.zero")
known_as(f"{__name__}.checkpoint", "graphc.checkpoints.sharded")
