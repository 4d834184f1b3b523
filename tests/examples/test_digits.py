"""The digits for the examples: IDX files read with checks, small digits enlarged and centred."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")

from examples import digits
from tests.examples.run_example import ROOT


def write_idx(path: Path, values: np.ndarray) -> None:
    head = bytes([0, 0, 8, values.ndim]) + b"".join(n.to_bytes(4) for n in values.shape)
    data = head + values.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def write_mnist(folder: Path, labels: np.ndarray) -> np.ndarray:
    images = np.random.default_rng(0).integers(0, 256, (len(labels), 28, 28))
    write_idx(folder / "train-images-idx3-ubyte", images)
    write_idx(folder / "train-labels-idx1-ubyte.gz", labels)
    write_idx(folder / "t10k-images-idx3-ubyte.gz", images[:2])
    write_idx(folder / "t10k-labels-idx1-ubyte", labels[:2])
    return images


def test_mnist_files_are_read_plain_and_compressed(tmp_path: Path):
    raw = write_mnist(tmp_path, np.array([3, 1, 4, 1]))
    images, labels, test_images, test_labels = digits.load(tmp_path)
    assert images.shape == (4, 1, 28, 28)
    assert (images.dtype, labels.dtype) == (np.float32, np.int64)
    assert labels.tolist() == [3, 1, 4, 1]
    assert test_labels.tolist() == [3, 1]
    np.testing.assert_allclose(images[:, 0] * digits.DEVIATION + digits.MEAN, raw / 255, atol=1e-6)
    assert np.array_equal(test_images, images[:2])


def test_damaged_files_are_refused(tmp_path: Path):
    write_mnist(tmp_path, np.array([3, 1, 4, 1]))
    path = tmp_path / "t10k-labels-idx1-ubyte"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="t10k-labels-idx1-ubyte: "):
        digits.load(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="train-images-idx3-ubyte"):
        digits.load(tmp_path)


def test_labels_that_are_no_digits_are_refused(tmp_path: Path):
    write_mnist(tmp_path, np.array([3, 10, 4, 1]))
    with pytest.raises(ValueError, match="not a pair of MNIST files"):
        digits.load(tmp_path)


def test_enlarging_keeps_brightness_and_centre():
    image = np.zeros((1, 8, 8))
    image[0, 3:5, 3:5] = 1
    large = digits.enlarge(image)[0]
    assert large.shape == (28, 28)
    assert large.sum() == pytest.approx(4 * 2.5**2)
    centre = np.average(np.arange(28), weights=large.sum(axis=0))
    assert centre == pytest.approx(13.5)
    assert not large[:4].any()


def test_the_held_out_digits_are_a_fifth_and_fixed():
    images, labels, test_images, test_labels = digits.load(None)
    assert (len(images), len(test_images)) == (1437, 360)
    assert images.shape[1:] == (1, 28, 28)
    assert images.flags.c_contiguous
    assert test_images.flags.c_contiguous
    assert np.bincount(labels).min() > 100
    assert np.array_equal(test_labels, digits.load(None)[3])


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("raise KeyboardInterrupt", "interrupted\n"),
        ("digits.load(pathlib.Path('nowhere'))", "error: nowhere has neither train-images-idx3-ubyte nor "),
    ],
)
def test_one_line_instead_of_a_traceback(body: str, text: str, tmp_path: Path):
    program = f"import pathlib, sys; sys.path[:0] = {[str(ROOT), str(ROOT / 'examples')]!r}\nimport digits\n"
    program += f"def main():\n    {body}\ndigits.run(main)\n"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(text)
    assert done.stderr.count("\n") == 1
