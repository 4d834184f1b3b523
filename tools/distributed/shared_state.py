"""Bytes of optimizer state in each of several processes that shard it.

``python -m tools.distributed.shared_state --ranks 1,2,4`` takes one step of Adam on a perceptron of 25 MB. Ranks are
threads, so that MPI is not needed. ``--json`` prints the bytes as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

import graphc as gc
from graphc import nn
from graphc.distributed import threads
from graphc.optim.zero import ZeroRedundancyOptimizer

WIDTH, LAYERS = 1024, 6


def state_bytes(ranks: int, width: int = WIDTH, layers: int = LAYERS) -> list[int]:
    """Return bytes of Adam's moments in each process, after a step."""

    def one(rank: int) -> int:
        net = nn.Sequential(*[nn.Linear(width, width) for _ in range(layers)])
        optimizer = ZeroRedundancyOptimizer(net.parameters(), gc.optim.Adam, lr=1e-3)
        for parameter in net.parameters():
            parameter.grad = gc.ones_like(parameter)
        optimizer.step()
        return sum(t.numel() * t.dtype.itemsize for state in optimizer.state.values() for t in state.values())

    return threads.run(ranks, one)


def main(argv: Sequence[str]) -> int:
    """Print a line for each number of processes."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.distributed.shared_state", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--ranks", default="1,2,4", metavar="N,..")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    sizes = {count: state_bytes(count) for count in map(int, args.ranks.split(","))}
    if args.json:
        print(json.dumps(sizes))
    else:
        for count, each in sizes.items():
            print(f"{count} ranks: {', '.join(f'{size / 1e6:.1f}' for size in each)} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
