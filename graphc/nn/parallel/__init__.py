"""One module on parts of a batch: in threads of one process, or in several processes."""

from graphc.nn.parallel.data_parallel import DataParallel, data_parallel
from graphc.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]
