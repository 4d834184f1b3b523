"""Train a model from its file, and build a C library that needs neither Python nor graphc.

The file holds two entries over the same weights: ``infer`` and ``train_step``. A program without the model's Python
code trains it, and a shared library is built from the trained weights; numpy alone calls it here.

    python examples/deploy.py
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

import graphc as gc
from graphc import nn
from graphc.nn import functional as F

BATCH = 32


def write_file(path: Path) -> None:
    """Write the model file, as the author of the model does."""
    gc.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
    step = gc.compile_step(net, F.mse_loss, gc.optim.Adam(net.parameters(), lr=0.01))
    entries = {
        "infer": gc.Entry(net, gc.zeros(1, 2)),
        "train_step": gc.Entry(step, gc.zeros(BATCH, 2), gc.zeros(BATCH, 1)),
    }
    gc.export(entries, path=path, golden=True)


def train(path: Path, steps: int = 500) -> dict[str, np.ndarray]:
    """Train the model, as a user of the file does: it learns the product of two numbers."""
    model, random = gc.load(path), np.random.default_rng(0)
    for number in range(steps + 1):
        x = random.uniform(-1, 1, (BATCH, 2)).astype(np.float32)
        loss = model.entry("train_step")(x, x[:, :1] * x[:, 1:])
        if number % 100 == 0:
            print(f"step {number:3}  loss {float(loss):.5f}")
    return model.state_dict()


def load_library(folder: Path) -> Any:
    """Return the loader of the library, which imports numpy alone."""
    spec = importlib.util.spec_from_file_location("product_loader", folder / "product_loader.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Model()


def main() -> None:
    folder = Path("out")
    folder.mkdir(exist_ok=True)
    write_file(folder / "net.gcm")
    print("self test:", "good" if gc.selftest(folder / "net.gcm").good else "WRONG")
    state = train(folder / "net.gcm")

    net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1)).eval()
    net.load_state_dict({name: state[name] for name in net.state_dict()})
    library = gc.build_library(net, gc.zeros(1, 2), path=folder / "product.so", emit=("so", "h", "c", "py"))
    print("library:", ", ".join(sorted(path.name for path in library.files.values())))
    x = np.array([[0.5, -0.8]], np.float32)
    print(f"0.5 * -0.8 = {load_library(folder).run(x)[0, 0]:.3f}, says the library")


if __name__ == "__main__":
    main()
