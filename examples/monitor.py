"""Watch the digit network while it trains: a live table in the terminal, a page, and event files for TensorBoard."""

from __future__ import annotations

import argparse
from pathlib import Path

import digits
import output
from net import Net

import graphc as gc
from graphc.data import DataLoader, TensorDataset
from graphc.monitor import HtmlWriter, Monitor, TensorBoardWriter, TerminalWriter
from graphc.nn import functional as F


def train(net: Net, loader: DataLoader, monitor: Monitor, steps: int) -> None:
    optimizer = gc.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    while monitor.steps < steps:
        for images, labels in loader:
            optimizer.zero_grad()
            scores = net(images)
            loss = F.nll_loss(scores, labels)
            loss.backward()
            optimizer.step()
            if monitor.steps % 10 == 0:
                monitor.image("first digit", images[0])
                monitor.histogram("conv1.weight", net.conv1.weight)
            monitor.step(loss=loss, accuracy=(scores.argmax(1) == labels).float().mean())
            if monitor.steps == steps:
                break


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60, help="number of training steps, in eager mode")
    parser.add_argument("--out", type=Path, default=Path("out"), help="output folder (default: out)")
    args = parser.parse_args(argv)
    output.prepare(args.out)
    images, labels, _, _ = digits.load(None)
    gc.manual_seed(0)
    net = Net().train()
    print(gc.summary(net, images[:64]))
    loader = DataLoader(TensorDataset(images, labels), 64, shuffle=True, drop_last=True, num_workers=2)
    writers = [TerminalWriter(), HtmlWriter(args.out / "monitor.html"), TensorBoardWriter(args.out / "events")]
    with Monitor(net, *writers, every=2, histograms=True) as monitor:
        train(net, loader, monitor, args.steps)
    loss = F.nll_loss(net(gc.tensor(images[:64])), gc.tensor(labels[:64]))
    gc.picture(loss, args.out / "autograd.svg", module=net)
    gc.picture(gc.trace(net.eval(), images[:1]), args.out / "graph.html")
    print("written:", *(args.out / name for name in ("monitor.html", "events", "autograd.svg", "graph.html")))


if __name__ == "__main__":
    digits.run(main)
