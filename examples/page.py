"""Train a small convolutional network on handwritten digits, and write a web page that classifies what one draws."""

from __future__ import annotations

import argparse
from pathlib import Path

import digits
import mnist
import output

import graphc as gc
from graphc import Tensor, nn


class Net(nn.Sequential):
    """Takes pixels from 0 (black) to 1 (white), float32 [n, 1, 28, 28]; returns logarithms of ten probabilities."""

    def __init__(self):
        first = nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
        second = nn.Conv2d(8, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
        super().__init__(*first, *second, nn.Flatten(), nn.Linear(588, 10), nn.LogSoftmax(1))


class Drawing(nn.Module):
    """Returns the probabilities of a net for one image, float32 [1, 10]."""

    def __init__(self, net: Net):
        super().__init__()
        self.net = net

    def forward(self, image: Tensor) -> Tensor:
        """Classify an image."""
        return self.net(image).exp()


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of MNIST's IDX files; default: scikit-learn's digits")
    parser.add_argument("--epochs", type=int, help="number of epochs (default: 40, or 3 with --data)")
    parser.add_argument("--out", type=Path, default=Path("out"), help="output folder (default: out)")
    args = parser.parse_args(argv)
    output.prepare(args.out)
    gc.manual_seed(0)
    images, labels, test_images, test_labels = digits.load(args.data)
    images, test_images = (x * digits.DEVIATION + digits.MEAN for x in (images, test_images))
    net = Net()
    mnist.train(net, images, labels, args.epochs or (3 if args.data else 40))
    accuracy = (mnist.classify(gc.compile(net.eval()), test_images) == test_labels).mean()
    print(f"held-out accuracy: {accuracy:.2%} of {len(test_labels)}")
    model, example = Drawing(net), gc.zeros(1, 1, 28, 28)
    library = gc.build_library(model, example, path=args.out / "digits.wasm", target="wasm")
    for path in library.files.values():
        print(f"{path}: {path.stat().st_size} bytes")
    print(f"python -m http.server -d {args.out}, then open http://localhost:8000/digits.html")


if __name__ == "__main__":
    main()
