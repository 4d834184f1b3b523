"""Sample order of a training, a function of seed and epoch alone, which allows resuming at any step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.base.records import dataclass
from graphc.data.loader import THREAD, DataLoader
from graphc.data.sampler import BatchSampler, Sampler
from graphc.tensors.creation import randperm
from graphc.tensors.random.generator import Generator


@dataclass(frozen=True)
class Order:
    """Batches of each epoch, as lists of sample indices."""

    count: int
    """Number of samples."""
    batch: int
    seed: int = 0
    shuffle: bool = False
    drop_last: bool = False
    """Whether an incomplete batch at the end of an epoch is left out."""

    def __post_init__(self) -> None:
        if not len(self):
            raise ArgumentError(
                f"{self.count} samples make no batch of {self.batch}", remedy="pass more samples, or a smaller --batch"
            )

    def __len__(self) -> int:
        """Return the number of batches in an epoch."""
        return self.count // self.batch if self.drop_last else -(-self.count // self.batch)

    def epoch(self, number: int, start: int = 0) -> list[list[int]]:
        """Return the batches of an epoch, from index ``start`` on."""
        return list(BatchSampler(_EpochSampler(self, number), self.batch, self.drop_last))[start:]


class _EpochSampler(Sampler):
    """Sampler of all samples of an epoch, each once."""

    def __init__(self, order: Order, epoch: int):
        self.order = order
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        if not self.order.shuffle:
            return iter(range(self.order.count))
        # NOTE: the step of the generator is the epoch, so that no epoch depends on those before it.
        seed = np.array([self.order.seed], np.uint64).view(np.int64)[0]
        generator = Generator().set_state(np.array([seed, self.epoch], np.int64))
        return iter(randperm(self.order.count, generator=generator).tolist())

    def __len__(self) -> int:
        return self.order.count


class OrderedBatches:
    """Batches of data in an order, which threads read ahead."""

    def __init__(self, data: Any, order: Order, workers: int = 0):
        """``data.take`` returns batches."""
        self.data, self.order, self.workers = data, order, workers

    @property
    def count(self) -> int:
        """Number of batches of an epoch."""
        return len(self.order)

    def epoch(self, number: int, start: int) -> Iterable[Any]:
        """Return the batches of an epoch, from index ``start`` on."""
        batches = self.order.epoch(number, start)
        return DataLoader(self.data, batch_sampler=batches, num_workers=self.workers, multiprocessing_context=THREAD)
