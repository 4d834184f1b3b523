"""A small training in several processes that may be killed at any time and resumed from a checkpoint.

``mpiexec -n 2 python -m tools.damage.train_ranks FOLDER --resume`` trains with dropout, a schedule and an optimizer
whose state is sharded over the processes, and writes FOLDER/trained.safetensors at the end. tools/damage/kill_ranks.py
kills it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import graphc as gc
from graphc import distributed, nn
from graphc.checkpoints import save_safetensors, sharded
from graphc.data import BatchSampler, DistributedSampler
from graphc.nn import functional as F
from graphc.nn.parallel import DistributedDataParallel
from graphc.optim.lr_scheduler import CosineAnnealingLR
from graphc.optim.zero import ZeroRedundancyOptimizer

SAMPLES, FEATURES, WIDTH, CLASSES = 384, 24, 96, 5
BATCH = 8
"""Samples of a step of one process."""
EPOCHS = 2
SEED = 11
TRAINED, CHECKPOINT = "trained.safetensors", "checkpoint"


class Training:
    """Model, optimizer, schedule, and how far they are."""

    def __init__(self, compiled: bool) -> None:
        gc.use_deterministic_algorithms(True)
        gc.manual_seed(SEED)
        self.data, self.labels = gc.randn(SAMPLES, FEATURES), gc.randint(0, CLASSES, (SAMPLES,))
        net = nn.Sequential(nn.Linear(FEATURES, WIDTH), nn.LayerNorm(WIDTH), nn.GELU(), nn.Dropout(0.2))
        net.append(nn.Linear(WIDTH, CLASSES))
        self.model = DistributedDataParallel(net)
        self.optimizer = ZeroRedundancyOptimizer(self.model.parameters(), gc.optim.AdamW, lr=3e-3)
        self.sampler = DistributedSampler(range(SAMPLES), distributed.size(), distributed.rank(), seed=SEED)
        self.batches = BatchSampler(self.sampler, BATCH)
        self.schedule = CosineAnnealingLR(self.optimizer, EPOCHS * len(self.batches))
        self.step = gc.compile_step(self.model, F.cross_entropy, self.optimizer) if compiled else self.eager_step
        self.done = 0
        """Steps."""

    def state(self) -> dict[str, Any]:
        """Return everything that the rest of the training depends on; each process has its own random state."""
        saved = {"model": self.model.module, "optimizer": self.optimizer, "schedule": self.schedule, "done": self.done}
        return saved | {f"random of rank {distributed.rank()}": gc.get_rng_state()}

    def resume(self, folder: Path) -> None:
        """Go on from the checkpoint in a folder."""
        state = sharded.load(self.state(), folder)
        self.done = state["done"]
        gc.set_rng_state(state[f"random of rank {distributed.rank()}"])

    def run(self, folder: Path, every: int) -> None:
        """Train to the end, with a checkpoint after each ``every`` steps."""
        for epoch in range(self.done // len(self.batches), EPOCHS):
            self.sampler.set_epoch(epoch)
            for batch in list(self.batches)[self.done % len(self.batches) :]:
                self.step(self.data[batch], self.labels[batch])
                self.schedule.step()
                self.done += 1
                if self.done % every == 0:
                    sharded.save(self.state(), folder)

    def eager_step(self, samples: gc.Tensor, labels: gc.Tensor) -> None:
        """Run the forward pass, the backward pass and the update."""
        self.optimizer.zero_grad()
        F.cross_entropy(self.model(samples), labels).backward()
        self.optimizer.step()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=1, help="number of steps between two checkpoints")
    parser.add_argument("--compiled", action="store_true", help="run compiled steps instead of eager mode")
    parser.add_argument("--resume", action="store_true", help="continue from the checkpoint in the folder, if any")
    options = parser.parse_args()
    distributed.init()
    training = Training(options.compiled)
    if options.resume and (options.folder / CHECKPOINT / sharded.MANIFEST).exists():
        training.resume(options.folder / CHECKPOINT)
    training.run(options.folder / CHECKPOINT, options.every)
    if distributed.rank() == 0:
        save_safetensors(training.model.module.state_dict(), options.folder / TRAINED)
    return 0


if __name__ == "__main__":
    sys.exit(main())
