"""Real handwritten digits as 28x28 images: MNIST files where a folder is given, else scikit-learn's own set."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from graphc.base.installation import install_command
from graphc.data import read_idx

try:
    from sklearn.datasets import load_digits
except ModuleNotFoundError as error:
    raise SystemExit(f"{error}; this example needs: {install_command('examples')}") from None

MEAN, DEVIATION = 0.1307, 0.3081  # of MNIST's pixels between 0 and 1
BOX = 20  # MNIST's digits fill a box of 20x20 in the middle of 28x28

Images = np.ndarray  # float32 [n, 1, 28, 28], normalised
Labels = np.ndarray  # int64 [n]


def find_file(folder: Path, name: str) -> Path:
    """Return the file of that name, plain or compressed."""
    for candidate in (folder / name, folder / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    raise FileNotFoundError(f"{folder} has neither {name} nor {name}.gz")


def read_mnist(folder: Path, subset: str) -> tuple[Images, Labels]:
    """Return the images and labels of ``train`` or ``t10k``; raise ValueError where they do not fit together."""
    images = read_idx(find_file(folder, f"{subset}-images-idx3-ubyte"))
    labels = read_idx(find_file(folder, f"{subset}-labels-idx1-ubyte"))
    if images.shape != (len(labels), 28, 28) or labels.ndim != 1 or labels.max(initial=0) > 9:
        raise ValueError(
            f"{folder}: {subset} images {images.shape} and labels {labels.shape} are not a pair of MNIST files"
        )
    return normalise(images / np.float32(255)), labels.astype(np.int64)


def normalise(pixels: np.ndarray) -> Images:
    """Convert pixels between 0 and 1, [n, 28, 28], to inputs of the network."""
    return ((pixels.astype(np.float32) - MEAN) / DEVIATION).reshape(-1, 1, 28, 28)


def enlarge(images: np.ndarray) -> np.ndarray:
    """Scale square images to 20x20, bilinear with pixel centres aligned, and centre them in 28x28."""
    side = images.shape[-1]
    grid = (np.arange(BOX) + 0.5) * side / BOX - 0.5
    weights = np.stack([np.interp(grid, np.arange(side), row) for row in np.eye(side)], axis=1)
    margin = (28 - BOX) // 2
    return np.pad(weights @ images @ weights.T, ((0, 0), (margin, margin), (margin, margin)))


def load(folder: Path | None) -> tuple[Images, Labels, Images, Labels]:
    """Return training images and labels, then held-out ones; of scikit-learn's 1797 digits every fifth is held out."""
    if folder is not None:
        return *read_mnist(folder, "train"), *read_mnist(folder, "t10k")
    pixels, labels = load_digits(return_X_y=True)
    images, labels = normalise(enlarge(pixels.reshape(-1, 8, 8) / 16)), labels.astype(np.int64)
    held_out = np.random.default_rng(0).permutation(len(labels)) % 5 == 0
    return images[~held_out], labels[~held_out], images[held_out], labels[held_out]


def run(main: Callable[[], None]) -> None:
    """Run a program; Ctrl-C and files that cannot be read or written end it with one line instead of a traceback."""
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit("interrupted") from None
    except OSError as error:
        raise SystemExit(f"error: {error}") from None
