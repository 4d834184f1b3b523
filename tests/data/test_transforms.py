"""Transforms: formulas by hand, arrays and tensors, reproducible randomness, and inputs that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.data import DataLoader, MapDataset, transforms
from graphc.errors import ArgumentError, DTypeError, ShapeError

IMAGE = np.arange(3 * 4 * 5, dtype=np.float32).reshape(3, 4, 5)
SIGNAL = np.arange(12, dtype=np.float32).reshape(2, 6)


def drawn(transform: Any, sample: np.ndarray, count: int = 200) -> list[np.ndarray]:
    gc.manual_seed(0)
    return [np.array(transform(sample)) for _ in range(count)]


def test_to_tensor():
    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    tensor = transforms.ToTensor()(image)
    assert tensor.shape == (3, 2, 4) and np.array_equal(tensor.numpy(), image.transpose(2, 0, 1) / np.float32(255))
    assert transforms.ToTensor()(np.ones((2, 4))).numpy().tolist() == np.ones((1, 2, 4)).tolist()
    with pytest.raises(ShapeError, match="2 or 3 dimensions"):
        transforms.ToTensor()(np.ones(3))


def test_normalize():
    mean, std = np.array([1, 2, 3], np.float32), np.array([2, 4, 8], np.float32)
    wanted = (IMAGE - mean[:, None, None]) / std[:, None, None]
    assert np.array_equal(transforms.Normalize([1, 2, 3], [2, 4, 8])(IMAGE), wanted)
    assert np.array_equal(transforms.Normalize([1, 2, 3], [2, 4, 8])(IMAGE[None])[0], wanted)
    assert np.array_equal(transforms.Normalize([1, 2], [2, 4], dim=-2)(SIGNAL), (SIGNAL - [[1], [2]]) / [[2], [4]])
    alone = transforms.Normalize(1, [2])(SIGNAL)
    assert alone.dtype == np.float32 and np.array_equal(alone, (SIGNAL - 1) / 2)
    with pytest.raises(ShapeError, match="has no 2 channels in dimension -3"):
        transforms.Normalize([1, 2], 1)(SIGNAL)
    with pytest.raises(DTypeError, match="apply ToTensor first"):
        transforms.Normalize(0, 1)(IMAGE.astype(np.uint8))
    with pytest.raises(ArgumentError, match="std is not 0"):
        transforms.Normalize([0, 0], [1, 0])


def test_crops():
    assert np.array_equal(transforms.CenterCrop(2)(IMAGE), IMAGE[:, 1:3, 2:4])
    assert np.array_equal(transforms.CenterCrop((2, 3))(IMAGE), IMAGE[:, 1:3, 1:4])
    assert np.array_equal(transforms.CenterCrop((4,))(SIGNAL), SIGNAL[:, 1:5])
    seen = {tuple(part[0, 0].astype(int)) for part in drawn(transforms.RandomCrop((4, 3)), IMAGE)}
    assert seen == {(0, 1, 2), (1, 2, 3), (2, 3, 4)}
    padded = np.pad(SIGNAL, ((0, 0), (2, 2)), constant_values=-1)
    parts = drawn(transforms.RandomCrop((6,), padding=2, fill=-1), SIGNAL)
    starts = {next(i for i in range(5) if np.array_equal(part, padded[:, i : i + 6])) for part in parts}
    assert starts == set(range(5))
    for crop in (transforms.CenterCrop(5), transforms.RandomCrop((2, 2, 2, 2))):
        with pytest.raises(ShapeError, match="is smaller than a crop"):
            crop(IMAGE)
    for size, padding in ((0, 0), ((), 0), (3, -1)):
        with pytest.raises(ArgumentError, match=r"RandomCrop: .* at least"):
            transforms.RandomCrop(size, padding)


@pytest.mark.parametrize(("kind", "dim"), [(transforms.RandomHorizontalFlip, -1), (transforms.RandomVerticalFlip, -2)])
def test_flips(kind: Any, dim: int):
    assert np.array_equal(kind(1.0)(IMAGE), np.flip(IMAGE, dim)) and np.array_equal(kind(0)(IMAGE), IMAGE)
    flipped = [np.array_equal(image, np.flip(IMAGE, dim)) for image in drawn(kind(0.25), IMAGE, 400)]
    assert 60 < sum(flipped) < 140
    with pytest.raises(ArgumentError, match="p is a probability"):
        kind(1.5)


def test_noise():
    gc.manual_seed(0)
    noisy = transforms.GaussianNoise(1.0, 0.5, clip=False)(np.zeros((200, 200), np.float32))
    assert noisy.dtype == np.float32
    assert noisy.mean() == pytest.approx(1, abs=0.02) and noisy.std() == pytest.approx(0.5, abs=0.02)
    clipped = transforms.GaussianNoise(sigma=2.0)(IMAGE / 60)
    assert clipped.min() == 0 and clipped.max() == 1
    with pytest.raises(DTypeError, match="takes floats"):
        transforms.GaussianNoise()(np.ones(3, int))
    with pytest.raises(ArgumentError, match="sigma is at least 0"):
        transforms.GaussianNoise(sigma=-1)


def test_mixup():
    x, y = gc.tensor(IMAGE[:, 0]), gc.tensor([0, 1, 1])
    gc.manual_seed(0)
    mixed, target = (t.numpy() for t in transforms.MixUp(alpha=0.4, num_classes=2)(x, y))
    share = target[0, 0]
    assert 0 < share < 1 and target.dtype == np.float32
    assert np.allclose(target, [[share, 1 - share], [1 - share, share], [0, 1]])
    assert np.allclose(mixed, IMAGE[:, 0] * share + IMAGE[[2, 0, 1], 0] * (1 - share), rtol=1e-5)
    numbers = transforms.MixUp()(x, gc.tensor([1.0, 2.0, 4.0]))[1].numpy()
    assert numbers.sum() == pytest.approx(7)
    for more, targets, message in (
        ({}, y, "classes cannot be blended"),
        ({"num_classes": 1}, y, "not all among 1 classes"),
        ({"num_classes": 2}, gc.ones(3), "targets are classes"),
        ({"alpha": 0}, y, "alpha is above 0"),
    ):
        with pytest.raises((ArgumentError, ShapeError), match=message):
            transforms.MixUp(**more)(x, targets)


def test_tensors_and_arrays_stay_what_they_are():
    steps = [transforms.RandomHorizontalFlip(1.0), transforms.CenterCrop(2), transforms.Normalize(0.5, 2)]
    both = transforms.Compose(steps)
    assert isinstance(both(IMAGE), np.ndarray)
    tensor = both(gc.tensor(IMAGE))
    assert isinstance(tensor, gc.Tensor) and np.array_equal(tensor.numpy(), both(IMAGE))
    assert repr(both).startswith("Compose([RandomHorizontalFlip(p=1.0), CenterCrop(size=(2, 2)), Normalize(")


def test_samples_stay_as_they_are():
    image = IMAGE.copy()
    for kind in (transforms.GaussianNoise(), transforms.Normalize(1, 2), transforms.RandomCrop(2, 1)):
        kind(image)
        kind(gc.from_numpy(image))
    assert np.array_equal(image, IMAGE)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_seed_repeats_the_batches_of_a_loader(workers: int):
    augment = transforms.Compose([transforms.RandomCrop(2), transforms.GaussianNoise(clip=False)])

    def batches() -> list[Any]:
        gc.manual_seed(4)
        loader = DataLoader(MapDataset(list(np.stack([IMAGE] * 6)), augment), 3, shuffle=True, num_workers=workers)
        return [batch.numpy().tolist() for _ in range(2) for batch in loader]

    first = batches()
    assert first == batches() and all(batch != first[0] for batch in first[1:])
