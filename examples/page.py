"""Train a small convolutional network on handwritten digits, and write a web page that classifies what one draws."""

from __future__ import annotations

import argparse
from pathlib import Path

import digits
import mnist
from net import Net

import graphc as gc
from graphc import Tensor, nn


class Drawing(nn.Module):
    """Takes pixels from 0 (black) to 1 (white), float32 [1, 1, 28, 28]; returns ten probabilities, [1, 10]."""

    def __init__(self, net: Net):
        super().__init__()
        self.net = net

    def forward(self, image: Tensor) -> Tensor:
        """Classify an image."""
        return self.net((image - digits.MEAN) / digits.DEVIATION).exp()


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of MNIST's IDX files; default: scikit-learn's digits")
    parser.add_argument("--epochs", type=int, help="number of epochs (default: 40, or 3 with --data)")
    parser.add_argument("--out", type=Path, default=Path("out"), help="output folder (default: out)")
    args = parser.parse_args(argv)
    gc.manual_seed(0)
    images, labels, *_ = digits.load(args.data)
    net = Net()
    mnist.train(net, images, labels, args.epochs or (3 if args.data else 40))
    args.out.mkdir(exist_ok=True)
    model, example = Drawing(net.eval()), gc.zeros(1, 1, 28, 28)
    library = gc.build_library(model, example, path=args.out / "digits.wasm", target="wasm")
    for path in library.files.values():
        print(f"{path}: {path.stat().st_size} bytes")
    print(f"python -m http.server -d {args.out}, then open http://localhost:8000/digits.html")


if __name__ == "__main__":
    main()
