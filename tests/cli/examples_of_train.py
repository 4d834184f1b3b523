"""Files of the examples of ``graphc train``: a trainable net, and data for it."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

import graphc as gc
from graphc import nn

COUNT = 64
"""How many samples there are."""
IMAGES, LABELS = "images-idx3-ubyte", "labels-idx1-ubyte"


def example_files(folder: Path, line: str) -> None:
    """Writes what one example needs."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, COUNT)
    if ".npz" in line or ".csv" in line:
        points = random.standard_normal((COUNT, 4)).astype(np.float32)
        _write_net(folder / "net.gcm", (4,))
        for name in ("train", "valid"):
            np.savez(folder / f"{name}.npz", x=points, y=labels)
        rows = [",".join(map(str, [*point, label])) for point, label in zip(points.tolist(), labels, strict=True)]
        (folder / "flowers.csv").write_text("\n".join(["a,b,c,d,kind", *rows, ""]))
        return
    pixels = random.integers(0, 255, (COUNT, 28, 28), dtype=np.uint8)
    _write_net(folder / "net.gcm", (1, 28, 28))
    (folder / "mnist").mkdir(exist_ok=True)
    for part in ("train", "t10k"):
        (folder / "mnist" / f"{part}-{IMAGES}").write_bytes(_idx(pixels))
        (folder / "mnist" / f"{part}-{LABELS}").write_bytes(_idx(labels.astype(np.uint8)))
    (folder / "images.gz").write_bytes(gzip.compress(_idx(pixels)))
    (folder / "labels.gz").write_bytes(gzip.compress(_idx(labels.astype(np.uint8))))


def _write_net(path: Path, shape: tuple[int, ...]) -> None:
    """A net with the entries ``infer`` and ``train_step``, on samples of this shape."""
    net = nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), 3))
    batch = (gc.Dim("batch", 1, 64),)
    optimizer = gc.optim.SGD(net.parameters(), lr=0.01)
    step = gc.compile_step(net, nn.functional.cross_entropy, optimizer, dims=[batch, batch])
    x, y = gc.randn(8, *shape), gc.randint(0, 3, (8,))
    gc.export({"infer": gc.Entry(net, x, train=False, dims=[batch]), "train_step": gc.Entry(step, x, y)}, path=path)


def _idx(array: np.ndarray) -> bytes:
    """The format of MNIST's files."""
    header = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return header + array.tobytes()
