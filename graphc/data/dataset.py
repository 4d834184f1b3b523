"""Datasets: samples by index or in sequence, subsets, and combinations of datasets."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import GenericAlias
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, IndexRangeError, ShapeError
from graphc.tensors.creation import as_tensor, randperm
from graphc.tensors.random.generator import Generator
from graphc.tensors.tensor import Tensor

__all__ = ["ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "MapDataset", "StackDataset", "Subset"]
__all__ += ["TensorDataset", "random_split"]


class Dataset:
    """Samples by index: subclasses define ``__getitem__`` and ``__len__``. Worker threads may read them concurrently.

    A subclass may also define ``take(indices)``, which returns the samples at these indices as one batch, joined as by
    ``default_collate``. Loaders without their own ``collate_fn`` use it, since it can be much faster.

    Example:
        >>> import graphc as gc
        >>> class Squares(gc.utils.data.Dataset):
        ...     def __len__(self):
        ...         return 4
        ...
        ...     def __getitem__(self, index):
        ...         return index**2
        >>> list(gc.utils.data.DataLoader(Squares(), batch_size=2))
        [tensor([0, 1]), tensor([4, 9])]
    """

    __class_getitem__ = classmethod(GenericAlias)

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define __getitem__")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Samples in sequence: subclasses define ``__iter__``.

    Example:
        >>> import graphc as gc
        >>> class Count(gc.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         return iter(range(5))
        >>> list(gc.utils.data.DataLoader(Count(), batch_size=2))
        [tensor([0, 1]), tensor([2, 3]), tensor([4])]
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__")

    def __getitem__(self, index: Any) -> Any:
        raise ArgumentError(f"{type(self).__name__} has no samples by index, it can only be iterated")


class TensorDataset(Dataset):
    """Dataset whose sample ``i`` is the tuple of entries ``i`` of tensors (or arrays) with equal first dimensions.

    Example:
        >>> import graphc as gc
        >>> dataset = gc.utils.data.TensorDataset(gc.tensor([[1.0], [2.0]]), gc.tensor([0, 1]))
        >>> len(dataset), dataset[1]
        (2, (tensor([2.]), tensor(1)))
    """

    def __init__(self, *tensors: Any):
        self.tensors: tuple[Tensor, ...] = tuple(as_tensor(t) for t in tensors)
        if not tensors or any(not t.ndim for t in self.tensors):
            raise ArgumentError("TensorDataset takes one or more tensors of at least one dimension")
        if len({t.shape[0] for t in self.tensors}) > 1:
            shapes = ", ".join(str(list(t.shape)) for t in self.tensors)
            raise ShapeError(f"the first dimensions of the tensors differ: {shapes}")

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]

    def take(self, indices: Sequence[int]) -> list[Tensor]:
        """Return the batch of these samples: one tensor per tensor."""
        rows = np.asarray(indices, np.int64)
        return [t[as_tensor(rows)] for t in self.tensors]


class MapDataset(Dataset):
    """Dataset whose sample ``i`` is ``function`` of sample ``i`` of another dataset, computed at each access."""

    def __init__(self, dataset: Any, function: Callable[[Any], Any]):
        self.dataset = dataset
        self.function = function

    def __getitem__(self, index: int) -> Any:
        return self.function(self.dataset[index])

    def __len__(self) -> int:
        return len(self.dataset)


class Subset(Dataset):
    """Samples of another dataset at ``indices``, in that order.

    Example:
        >>> import graphc as gc
        >>> subset = gc.utils.data.Subset(["a", "b", "c"], [2, 0])
        >>> list(subset)
        ['c', 'a']
    """

    def __init__(self, dataset: Any, indices: Sequence[int]):
        self.dataset = dataset
        self.indices = indices
        if hasattr(dataset, "take"):
            self.take = self._take

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)

    def _take(self, indices: Sequence[int]) -> Any:
        return self.dataset.take([self.indices[i] for i in indices])


class ConcatDataset(Dataset):
    """Concatenation of datasets with samples by index."""

    def __init__(self, datasets: Iterable[Any]):
        self.datasets = list(datasets)
        if not self.datasets or any(isinstance(d, IterableDataset) for d in self.datasets):
            raise ArgumentError("ConcatDataset takes one or more datasets with samples by index")
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))

    def __getitem__(self, index: int) -> Any:
        count = len(self)
        if not -count <= index < count:
            raise IndexRangeError(f"sample {index} of a dataset with {count} samples")
        index %= count
        number = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[number][index - (self.cumulative_sizes[number - 1] if number else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


def random_split(dataset: Any, lengths: Sequence[int | float], generator: Generator | None = None) -> list[Subset]:
    """Split a dataset at random into disjoint subsets of these lengths, or of these fractions if they add up to 1.

    Fractions are rounded down, and the remaining samples go to the subsets one by one, from the first. Raises
    ArgumentError if the lengths do not add up to the dataset's.

    Example:
        >>> import graphc as gc
        >>> train, valid = gc.utils.data.random_split(range(10), [0.8, 0.2], generator=gc.Generator().manual_seed(0))
        >>> len(train), len(valid)
        (8, 2)
    """
    count = len(dataset)
    are_fractions = any(isinstance(x, float) for x in lengths)
    if are_fractions and not math.isclose(sum(lengths), 1.0, rel_tol=0, abs_tol=1e-6):
        raise ArgumentError(f"the fractions {list(lengths)} do not add up to 1")
    sizes = [math.floor(count * x) for x in lengths] if are_fractions else [int(x) for x in lengths]
    if are_fractions:
        for i in range(count - sum(sizes)):
            sizes[i % len(sizes)] += 1
    if sum(sizes) != count or min(sizes, default=0) < 0:
        raise ArgumentError(f"the lengths {sizes} do not add up to the {count} samples of the dataset")
    order = randperm(count, generator=generator).tolist()
    ends = list(itertools.accumulate(sizes))
    return [Subset(dataset, order[end - size : end]) for end, size in zip(ends, sizes, strict=True)]


class StackDataset(Dataset):
    """Dataset whose sample ``i`` is the tuple, or with names the dictionary, of the samples ``i`` of datasets of one
    length."""

    def __init__(self, *datasets: Any, **named: Any):
        if bool(datasets) == bool(named):
            raise ArgumentError("StackDataset takes datasets, or datasets with names")
        self.datasets: tuple[Any, ...] | dict[str, Any] = datasets or named
        lengths = {len(d) for d in (datasets or named.values())}
        if len(lengths) > 1:
            raise ShapeError(f"the datasets have different lengths: {sorted(lengths)}")
        (self._length,) = lengths

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: d[index] for name, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __len__(self) -> int:
        return self._length


class ChainDataset(IterableDataset):
    """Concatenation of iterable datasets."""

    def __init__(self, datasets: Iterable[Any]):
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datasets)
