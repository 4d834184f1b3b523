"""What each process of a test does: steps of a shared optimizer, eagerly and compiled, and a checkpoint."""

from __future__ import annotations

import sys

from graphc import distributed, optim
from graphc.distributed import checkpoint
from graphc.distributed.optim import ZeroRedundancyOptimizer
from tests.optim import test_zero as tests


def main(folder: str) -> None:
    distributed.init()
    optimizer = tests.steps(ZeroRedundancyOptimizer(tests.parameters(), optim.Adam))
    tests.same(tests.values(optimizer), tests.values(tests.steps(optim.Adam(tests.parameters()))))
    shared = tests.trained(lambda p: ZeroRedundancyOptimizer(p, optim.Adam), whole=False)
    tests.same(shared, tests.trained(optim.Adam, whole=False))
    checkpoint.save({"optimizer": optimizer}, folder)
    print("equal", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
