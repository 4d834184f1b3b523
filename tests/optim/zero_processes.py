"""Work of each process of a test: steps of a shared optimizer, eager and compiled, and a checkpoint."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import graphc
from graphc import distributed, nn, optim
from graphc.distributed import checkpoint
from graphc.distributed.optim import ZeroRedundancyOptimizer
from tests.optim import test_zero as tests


def parallel(make: Any, compiled: bool) -> list[Any]:
    """The weights after steps of a DistributedDataParallel, each process with a batch of its own."""
    net = nn.parallel.DistributedDataParallel(tests.network())
    optimizer = make(net.parameters())
    optimizer.native = True
    step = graphc.compile_step(net, lambda found: found.square().mean(), optimizer) if compiled else None
    draw = np.random.default_rng(distributed.rank())
    for _ in range(6):
        x = graphc.tensor(draw.normal(size=(4, 6)).astype("f4"))
        if step is not None:
            step(x)
            continue
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
    return tests.values(optimizer)


def main(folder: str) -> None:
    distributed.init()
    optimizer = tests.steps(ZeroRedundancyOptimizer(tests.parameters(), optim.Adam))
    tests.same(tests.values(optimizer), tests.values(tests.steps(optim.Adam(tests.parameters()))))
    shared = tests.trained(lambda p: ZeroRedundancyOptimizer(p, optim.Adam), is_step=False)
    tests.same(shared, tests.trained(optim.Adam, is_step=False))
    for compiled in (False, True):
        tests.same(parallel(lambda p: ZeroRedundancyOptimizer(p, optim.Adam), compiled), parallel(optim.Adam, compiled))
    checkpoint.save({"optimizer": optimizer}, folder)
    print("equal", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
