"""Samplers: the order in which a loader reads samples, and their grouping to batches."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from types import GenericAlias
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.distributed.group import group
from graphc.tensors.creation import randperm
from graphc.tensors.random.generator import Generator, default_generator

__all__ = ["BatchSampler", "DistributedSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler"]
__all__ += ["WeightedRandomSampler"]


class Sampler:
    """Iterable of sample indices. Subclasses define ``__iter__``, and ``__len__`` if it is known."""

    __class_getitem__ = classmethod(GenericAlias)

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__")


class SequentialSampler(Sampler):
    """Indices of all samples in order."""

    def __init__(self, data_source: Any):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """Random order, a new one in each epoch, seeded by ``generator``.

    Without ``replacement`` each sample comes once before any is repeated; ``num_samples`` is the total (default: the
    number of samples).
    """

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | int | None = None,
    ):
        self.data_source = data_source
        self.replacement = replacement
        self.num_samples = len(data_source) if num_samples is None else num_samples
        self.generator = generator_of(generator)
        if self.num_samples < 0 or (self.num_samples and not len(data_source)):
            raise ArgumentError(f"{self.num_samples} samples cannot be drawn from {len(data_source)}")

    def __iter__(self) -> Iterator[int]:
        count = len(self.data_source)
        if self.replacement:
            yield from random_bits(self.generator).integers(0, count, self.num_samples).tolist()
            return
        for remaining in range(self.num_samples, 0, -max(count, 1)):
            yield from randperm(count, generator=self.generator).tolist()[:remaining]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Elements of ``indices`` in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | int | None = None):
        self.indices = indices
        self.generator = generator_of(generator)

    def __iter__(self) -> Iterator[int]:
        return (self.indices[i] for i in randperm(len(self.indices), generator=self.generator).tolist())

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """``num_samples`` indices, each drawn with a probability proportional to its weight."""

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | int | None = None,
    ):
        self.weights = np.asarray(weights, np.float64)
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator_of(generator)
        valid = self.weights.ndim == 1 and np.isfinite(self.weights).all() and (self.weights >= 0).all()
        if not valid or not self.weights.sum() > 0:
            raise ArgumentError("weights are a list of finite numbers of at least 0, not all of them 0")
        if not replacement and num_samples > np.count_nonzero(self.weights):
            raise ArgumentError(f"{num_samples} samples cannot be drawn once each, fewer have a weight above 0")

    def __iter__(self) -> Iterator[int]:
        probabilities = self.weights / self.weights.sum()
        chosen = random_bits(self.generator).choice(
            len(probabilities), self.num_samples, self.replacement, probabilities
        )
        yield from chosen.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of ``batch_size`` indices from another sampler; the last may be shorter unless ``drop_last``."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool = False):
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size < 1:
            raise ArgumentError(f"a batch size is an int of at least 1, got {batch_size!r}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        numbers = iter(self.sampler)
        while batch := list(itertools.islice(numbers, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


class DistributedSampler(Sampler):
    """Samples that process ``rank`` of ``num_replicas`` reads: every ``num_replicas``-th of an order common to all
    processes.

    Both default to the values of this process and its group. To make all shares equal, the first samples are repeated,
    or with ``drop_last`` the last ones are left out. ``set_epoch`` selects another order. Raises ArgumentError.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ):
        num_replicas = group().size if num_replicas is None else num_replicas
        rank = group().rank if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ArgumentError(
                f"DistributedSampler: rank {rank} of {num_replicas} processes", remedy="pass 0 <= rank < num_replicas"
            )
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0
        self.num_samples = len(dataset) // num_replicas if drop_last else -(-len(dataset) // num_replicas)
        self.total_size = self.num_samples * num_replicas

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, which determines the next order."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        order = range(count)
        if self.shuffle:
            order = randperm(count, generator=Generator().manual_seed(self.seed + self.epoch)).tolist()
        return itertools.islice(itertools.cycle(order), self.rank, self.total_size, self.num_replicas)

    def __len__(self) -> int:
        return self.num_samples


def generator_of(generator: Generator | int | None) -> Generator:
    """Return a generator: the argument itself, a new one from a seed, or the default one."""
    if isinstance(generator, Generator):
        return generator
    return default_generator if generator is None else Generator().manual_seed(generator)


def random_bits(generator: Generator) -> np.random.Generator:
    """Return a numpy generator seeded by the next step of ``generator``."""
    state, _ = generator.draw()
    seed, step = np.asarray(state.detach().numpy()).view(np.uint64).tolist()
    return np.random.default_rng([seed, step])
