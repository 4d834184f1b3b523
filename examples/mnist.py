"""Train a small convolutional network on handwritten digits in compiled mode, export it, and run the export."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import digits
import numpy as np
from net import Net
from output import prepare
from tqdm import trange

import graphc as gc
from graphc.nn import functional as F

BATCH = 64


def train(net: gc.nn.Module, images: digits.Images, labels: digits.Labels, epochs: int) -> None:
    step = gc.compile_step(net.train(), F.nll_loss, gc.optim.Adam(net.parameters(), lr=1e-3))
    for epoch in (bar := trange(epochs, desc="epoch")):
        order = np.random.default_rng(epoch).permutation(len(labels))
        batches = [order[i : i + BATCH] for i in range(0, len(order) - BATCH + 1, BATCH)]
        losses = [step(gc.tensor(images[rows]), gc.tensor(labels[rows])).item() for rows in batches]
        bar.set_postfix(loss=f"{np.mean(losses):.4f}")


def classify(model, images: digits.Images) -> np.ndarray:
    chunks = np.array_split(images, -(-len(images) // 500))
    with gc.no_grad():
        return np.concatenate([model(gc.tensor(chunk)).numpy().argmax(axis=1) for chunk in chunks])


def compare(net: Net, images: digits.Images, labels: digits.Labels) -> None:
    """Print how far compiled is from eager on one training batch with the same dropout bits."""
    outcomes = []
    for model in (net.train(), gc.compile(net.train())):
        gc.manual_seed(1)
        net.zero_grad()
        output = model(gc.tensor(images))
        F.nll_loss(output, gc.tensor(labels)).backward()
        outcomes.append([output.detach().numpy(), *(p.grad.numpy() for p in net.parameters())])
    output, *grads = (np.abs(a - b).max() / np.abs(a).max() for a, b in zip(*outcomes, strict=True))
    print(f"compiled against eager, dropout on: output {output:.1e}, gradients {max(grads):.1e} (relative)")


def run_export(net: Net, images: digits.Images, labels: digits.Labels, out: Path) -> None:
    """Export for one image and let the command line classify the given ones."""
    gc.export(net.eval(), gc.tensor(images[:1]), path=out / "net.gcm")
    for index, (image, label, eager) in enumerate(zip(images, labels, classify(net, images), strict=True)):
        source, result = out / f"digit{index}.npy", out / f"output{index}.npy"
        np.save(source, image[None])
        command = [sys.executable, "-m", "graphc", "run", str(out / "net.gcm"), "--input", f"x=@{source}"]
        subprocess.run([*command, "--output", str(result), "--print-top", "3"], check=True)
        print(f"{source}: label {label}, eager says {eager}, the exported model says {np.load(result).argmax()}")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of MNIST's IDX files; default: scikit-learn's digits")
    parser.add_argument("--epochs", type=int, help="number of epochs (default: 40, or 3 with --data)")
    parser.add_argument("--out", type=Path, default=Path("out"), help="output folder (default: out)")
    args = parser.parse_args(argv)
    prepare(args.out)
    images, labels, test_images, test_labels = digits.load(args.data)
    gc.manual_seed(0)
    net = Net()
    train(net, images, labels, args.epochs or (3 if args.data else 40))
    accuracy = np.mean(classify(gc.compile(net.eval()), test_images) == test_labels)
    print(f"held-out accuracy: {accuracy:.2%} of {len(test_labels)}")
    compare(net, test_images[:BATCH], test_labels[:BATCH])
    run_export(net, test_images[:3], test_labels[:3], args.out)


if __name__ == "__main__":
    digits.run(main)
