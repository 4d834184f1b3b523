"""Transforms of samples, images and signals, with the names of torchvision.

The dimensions that a transform changes are the last ones, so that it takes images [channels, height, width] and signals
[channels, length], arrays and tensors; it returns the class that it takes. Random transforms draw from the default
generator, which ``graphc.manual_seed`` seeds; DataLoader gives each process a seed of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, DTypeError, ShapeError
from graphc.data.sampler import random_bits
from graphc.tensors.creation import as_tensor, from_numpy
from graphc.tensors.random.generator import default_generator
from graphc.tensors.tensor import Tensor

__all__ = ["CenterCrop", "Compose", "GaussianNoise", "MixUp", "Normalize", "RandomCrop", "RandomHorizontalFlip"]
__all__ += ["RandomVerticalFlip", "ToTensor", "Transform"]


class Transform:
    """Base of transforms: subclasses define ``apply`` on arrays."""

    def __call__(self, sample: Any) -> Any:
        """Transform an array or a tensor."""
        if isinstance(sample, Tensor):
            return from_numpy(np.ascontiguousarray(self.apply(sample.detach().numpy())))
        return self.apply(np.asarray(sample))

    def apply(self, sample: np.ndarray) -> np.ndarray:
        """Return the transformed array. It may share memory with the sample, but does not change it."""
        raise NotImplementedError(f"{type(self).__name__} does not define apply")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


class Compose:
    """Transforms that follow one another.

    Example:
        >>> import graphc as gc
        >>> from graphc.data import transforms
        >>> augment = transforms.Compose([transforms.RandomCrop(28, padding=2), transforms.Normalize(0.5, 0.25)])
        >>> augment(gc.ones(1, 28, 28)).shape
        (1, 28, 28)
    """

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]):
        self.transforms = list(transforms)

    def __call__(self, sample: Any) -> Any:
        """Apply all transforms in order."""
        for transform in self.transforms:
            sample = transform(sample)
        return sample

    def __repr__(self) -> str:
        return f"Compose({self.transforms!r})"


class ToTensor:
    """Tensor of an image: an array [height, width, channels] or [height, width], or an image of Pillow, becomes
    [channels, height, width]. Bytes become f32 from 0 to 1; other types stay."""

    def __call__(self, image: Any) -> Tensor:
        """Return the tensor. Raise ShapeError for other numbers of dimensions."""
        array = np.asarray(image)
        if array.ndim not in (2, 3):
            raise ShapeError(
                f"ToTensor: an image has 2 or 3 dimensions, got {list(array.shape)}",
                remedy="use gc.tensor for other arrays",
            )
        array = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
        return from_numpy(np.ascontiguousarray(array / np.float32(255) if array.dtype == np.uint8 else array))

    def __repr__(self) -> str:
        return "ToTensor()"


class Normalize(Transform):
    """(sample - mean) / std.

    Args:
        mean, std: one number, or one for each channel.
        dim: dimension of the channels; ``dim=-2`` for signals [channels, length].
    """

    def __init__(self, mean: float | Sequence[float], std: float | Sequence[float], *, dim: int = -3):
        self.mean, self.std, self.dim = np.asarray(mean, np.float64), np.asarray(std, np.float64), dim
        if self.mean.ndim > 1 or self.std.ndim > 1 or not (self.std != 0).all():
            raise ArgumentError("Normalize: mean and std are numbers, or one for each channel, and std is not 0")

    def apply(self, sample: np.ndarray) -> np.ndarray:
        """Return the normalized sample. Raise DTypeError for whole numbers, ShapeError for other channels."""
        if sample.dtype.kind != "f":
            raise DTypeError(f"Normalize takes floats, got {sample.dtype}", remedy="apply ToTensor first")
        mean, std = (self._spread(numbers, sample) for numbers in (self.mean, self.std))
        return (sample - mean) / std

    def _spread(self, numbers: np.ndarray, sample: np.ndarray) -> np.ndarray:
        if numbers.size == 1:
            return numbers.reshape(()).astype(sample.dtype)
        if not -sample.ndim <= self.dim < sample.ndim or sample.shape[self.dim] != numbers.size:
            raise ShapeError(
                f"Normalize: {list(sample.shape)} has no {numbers.size} channels in dimension {self.dim}",
                remedy="pass a number for each channel, and their dimension as dim=",
            )
        sizes = [1] * sample.ndim
        sizes[self.dim] = numbers.size
        return numbers.reshape(sizes).astype(sample.dtype)


class _Crop(Transform):
    """Base of crops of the last dimensions."""

    def __init__(self, size: int | Sequence[int]):
        self.size = (size, size) if isinstance(size, int) else tuple(size)
        if not self.size or min(self.size) < 1:
            raise ArgumentError(f"{type(self).__name__}: sizes are at least 1, got {size!r}")

    def _room(self, sample: np.ndarray) -> list[int]:
        """Return by how much each dimension is larger than the crop. Raise ShapeError if it is smaller."""
        room = [n - size for n, size in zip(sample.shape[-len(self.size) :], self.size, strict=False)]
        if len(room) < len(self.size) or min(room) < 0:
            raise ShapeError(
                f"{type(self).__name__}: {list(sample.shape)} is smaller than a crop of {list(self.size)}",
                remedy="choose a smaller size, or pass padding= to RandomCrop",
            )
        return room

    def _cut(self, sample: np.ndarray, starts: Sequence[int]) -> np.ndarray:
        return sample[(..., *(slice(start, start + size) for start, size in zip(starts, self.size, strict=True)))]


class CenterCrop(_Crop):
    """The middle of the last dimensions.

    Args:
        size: height and width, one number for both; ``(length,)`` for signals.
    """

    def apply(self, sample: np.ndarray) -> np.ndarray:
        """Return the middle. Raise ShapeError for a smaller sample."""
        return self._cut(sample, [round(room / 2) for room in self._room(sample)])


class RandomCrop(_Crop):
    """A part of the last dimensions, at random.

    Args:
        size: height and width, one number for both; ``(length,)`` for signals.
        padding: elements added before and after each of these dimensions.
        fill: value of the padding.
    """

    def __init__(self, size: int | Sequence[int], padding: int = 0, fill: float = 0):
        super().__init__(size)
        if padding < 0:
            raise ArgumentError(f"RandomCrop: padding is at least 0, got {padding}")
        self.padding, self.fill = padding, fill

    def apply(self, sample: np.ndarray) -> np.ndarray:
        """Return a part. Raise ShapeError for a smaller sample."""
        if self.padding:
            sample = self._padded(sample)
        return self._cut(sample, _random().integers(0, np.add(self._room(sample), 1)).tolist())

    def _padded(self, sample: np.ndarray) -> np.ndarray:
        # NOTE: np.pad has a loop in Python over the dimensions, which takes longer than this for small images.
        kept = max(sample.ndim - len(self.size), 0)
        sizes = [n + 2 * self.padding for n in sample.shape[kept:]]
        padded = np.full((*sample.shape[:kept], *sizes), self.fill, sample.dtype)
        padded[(..., *[slice(self.padding, -self.padding)] * len(sizes))] = sample
        return padded


class _Flip(Transform):
    """Base of flips of one dimension with probability ``p``."""

    dim = -1

    def __init__(self, p: float = 0.5):
        if not 0 <= p <= 1:
            raise ArgumentError(f"{type(self).__name__}: p is a probability, got {p}")
        self.p = p

    def apply(self, sample: np.ndarray) -> np.ndarray:
        """Return the sample, or its mirror image."""
        return np.flip(sample, self.dim) if _random().random() < self.p else sample


class RandomHorizontalFlip(_Flip):
    """Mirror the last dimension with probability ``p``: the width of images, the time of signals."""


class RandomVerticalFlip(_Flip):
    """Mirror the dimension before the last, the height of images, with probability ``p``."""

    dim = -2


class GaussianNoise(Transform):
    """Add normally distributed noise.

    Args:
        mean, sigma: mean and standard deviation of the noise.
        clip: limit the result to 0 to 1, as for images; pass False for signals.
    """

    def __init__(self, mean: float = 0.0, sigma: float = 0.1, clip: bool = True):
        if sigma < 0:
            raise ArgumentError(f"GaussianNoise: sigma is at least 0, got {sigma}")
        self.mean, self.sigma, self.clip = mean, sigma, clip

    def apply(self, sample: np.ndarray) -> np.ndarray:
        """Return the noisy sample. Raise DTypeError for whole numbers."""
        if sample.dtype.kind != "f":
            raise DTypeError(f"GaussianNoise takes floats, got {sample.dtype}", remedy="apply ToTensor first")
        noisy = sample + _random().normal(self.mean, self.sigma, sample.shape).astype(sample.dtype)
        return np.clip(noisy, 0, 1) if self.clip else noisy


class MixUp:
    """Blend each sample of a batch and its target with those of the sample before (Zhang et al. 2018).

    Args:
        alpha: the share of the sample itself is drawn from a Beta(alpha, alpha) distribution, one for the batch.
        num_classes: number of classes of targets i64[batch], which become probabilities f32[batch, classes]; None for
            targets that are probabilities or numbers.

    Example:
        >>> import graphc as gc
        >>> from graphc.data import DataLoader, TensorDataset, default_collate, transforms
        >>> data = TensorDataset(gc.rand(8, 3), gc.arange(8) % 2)
        >>> mix = transforms.MixUp(num_classes=2)
        >>> loader = DataLoader(data, 4, collate_fn=lambda samples: mix(*default_collate(samples)))
        >>> [(x.shape, y.shape) for x, y in loader]
        [((4, 3), (4, 2)), ((4, 3), (4, 2))]
    """

    def __init__(self, *, alpha: float = 1.0, num_classes: int | None = None):
        if alpha <= 0:
            raise ArgumentError(f"MixUp: alpha is above 0, got {alpha}")
        self.alpha, self.num_classes = alpha, num_classes

    def __call__(self, x: Any, target: Any) -> tuple[Tensor, Tensor]:
        """Return the blended batch and its targets. Raise ArgumentError for classes without ``num_classes``."""
        target = as_tensor(target).detach().numpy()
        if self.num_classes is not None:
            if target.dtype.kind not in "iu" or target.ndim != 1:
                raise ShapeError(f"MixUp: targets are classes i64[batch], got {target.dtype} {list(target.shape)}")
            if target.min(initial=0) < 0 or target.max(initial=0) >= self.num_classes:
                raise ArgumentError(f"MixUp: targets are not all among {self.num_classes} classes")
            target = np.eye(self.num_classes, dtype=np.float32)[target]
        elif target.dtype.kind != "f":
            raise ArgumentError("MixUp: classes cannot be blended", remedy="pass num_classes=")
        share = _random().beta(self.alpha, self.alpha)
        x = as_tensor(x).detach().numpy()
        return tuple([from_numpy(_blended(array, share)) for array in (x, target)])  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"MixUp(alpha={self.alpha!r}, num_classes={self.num_classes!r})"


def _blended(array: np.ndarray, share: float) -> np.ndarray:
    return (array * share + np.roll(array, 1, axis=0) * (1 - share)).astype(array.dtype)


def _random() -> np.random.Generator:
    return random_bits(default_generator)
