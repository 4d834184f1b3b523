"""Data-parallel processes: ``mpiexec -n 4 python train.py``, where the script calls ``init()``.

Collectives take tensors, have gradients, and work in compiled code. Without a launcher, the same script runs as one
process. See docs/distributed.md.
"""

from graphc.base.lazy import known_as
from graphc.distributed.collectives import (
    ReduceOp,
    all_gather,
    all_gather_into_tensor,
    all_gather_object,
    all_reduce,
    all_to_all,
    all_to_all_single,
    broadcast,
    broadcast_object_list,
    reduce_scatter,
    reduce_scatter_tensor,
    reduced,
)
from graphc.distributed.group import (
    Group,
    barrier,
    destroy_process_group,
    group,
    init,
    init_process_group,
    is_available,
    is_initialized,
    is_mpi_available,
    rank,
    size,
    using,
)
from graphc.distributed.spans import timeline

get_rank = rank
get_world_size = size

__all__ = [
    "Group",
    "ReduceOp",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "get_rank",
    "get_world_size",
    "group",
    "init",
    "init_process_group",
    "is_available",
    "is_initialized",
    "is_mpi_available",
    "rank",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "reduced",
    "size",
    "timeline",
    "using",
]

known_as(f"{__name__}.optim", "graphc.optim.zero")
known_as(f"{__name__}.checkpoint", "graphc.checkpoints.sharded")
