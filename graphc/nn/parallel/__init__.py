"""Data parallelism: one module on chunks of a batch, in threads of one process or in several processes."""

from typing import TYPE_CHECKING

from graphc.base.lazy import exports
from graphc.nn.parallel.data_parallel import DataParallel, data_parallel

if TYPE_CHECKING:
    from graphc.nn.parallel import distributed
    from graphc.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "distributed"]

__getattr__ = exports(
    "graphc.nn.parallel",
    globals(),
    {
        "DistributedDataParallel": "graphc.nn.parallel.distributed:DistributedDataParallel",
        "distributed": "graphc.nn.parallel.distributed",
    },
)
