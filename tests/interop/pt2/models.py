"""Small models of PyTorch, each with example arguments and others of which the sizes may differ, as ``.pt2`` files."""

from __future__ import annotations

import copy
import json
import zipfile
from collections import namedtuple
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn
from torch._higher_order_ops.scan import scan
from torch.export import Dim
from torch.utils import _pytree

Pair = namedtuple("Pair", "low high")
_pytree._register_namedtuple(Pair, serialized_type_name="tests.Pair")


class Sample(NamedTuple):
    model: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = {}  # noqa: RUF012
    shapes: Any = None
    others: tuple[Any, ...] | None = None
    """Arguments of other sizes."""
    decomposed: bool = False


class Convolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3, padding=1)
        self.norm = nn.BatchNorm2d(3)
        self.head = nn.Linear(3, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(nn.functional.relu(self.norm(self.conv(x))).mean((2, 3)))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        return self.lstm(x)


class Tied(nn.Module):
    """Model whose head shares the embedding's weights, with positions as a constant of the graph."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(11, 6)
        self.norm = nn.LayerNorm(6)
        self.head = nn.Linear(6, 11, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + torch.tensor([0.5, -1.0, 0.0, 2.0, 1.0, -0.25])
        return self.head(self.norm(x)).log_softmax(-1)


class Nested(nn.Module):
    def forward(self, parts: dict[str, Any], *, scale: float = 2.0) -> Any:
        a, b = parts["pair"]
        low, high = (a * scale).sort(dim=-1)
        return {"sum": a + b, "sorted": (low, high), "none": None, "pair": Pair(a - b, [b])}


class Counting(nn.Module):
    """Model that writes to buffers, one of them outside the state."""

    calls: torch.Tensor
    mean: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.ones(3), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        self.mean.mul_(0.5).add_(x.mean(0), alpha=0.5)
        return x - self.mean * self.calls


class Writing(nn.Module):
    """Its argument is written to."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x.mul_(2)
        return x + 1


class Whole(nn.Module):
    def forward(self, table: torch.Tensor, index: torch.Tensor, count: int) -> torch.Tensor:
        return table[index % table.shape[0]] * count + table.shape[1]


class Views(nn.Module):
    """Model whose parameters and buffers are views of larger memory."""

    part: torch.Tensor
    turned: torch.Tensor
    mask: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        base = torch.arange(24.0).reshape(4, 6)
        self.register_buffer("part", base[1:3, ::2])
        self.register_buffer("turned", base.t())
        self.register_buffer("mask", torch.ones(1, dtype=torch.bool).expand(4, 6))
        self.weight = nn.Parameter(torch.arange(10.0)[2:5])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x @ self.turned)[:, :3] * self.part.sum() + self.weight * self.mask.sum()


class Even(nn.Module):
    """Model whose result depends on a size, so that the export holds for some sizes only."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.cumsum(0) if x.shape[0] % 2 == 0 else x * 100


class Twice(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x * y.reshape(x.shape[0], 2, -1).sum(1)


class Unmixed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", enabled=False):
            return x @ x.mT


class Scanned(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return scan(lambda carry, row: (carry * 0.5 + row, carry * row), torch.ones_like(x[0]), x, dim=0)


def samples() -> dict[str, Sample]:
    """Return the models by name, with the same weights each time."""
    torch.manual_seed(0)
    batch, time = Dim("batch", min=1, max=32), Dim("time", min=1, max=16)
    x = torch.randn
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    pair = {"pair": (x(3, 4), x(3, 4))}
    ints = torch.randint(0, 11, (2, 5))
    results = {
        "convolution": Sample(Convolution(), (x(2, 2, 5, 5),), {}, {"x": {0: batch}}, (x(7, 2, 5, 5),)),
        "recurrent": Sample(Recurrent(), (x(2, 4, 3),)),
        "transformer": Sample(layer, (x(2, 5, 8),), {}, {"src": {0: batch}}, (x(1, 5, 8),)),
        "tied": Sample(Tied(), (ints,), {}, {"tokens": {0: batch, 1: time}}, (ints[:, :3],)),
        "nested": Sample(Nested(), (pair,), {"scale": 3.0}),
        "counting": Sample(Counting(), (x(4, 3),)),
        "counting_decomposed": Sample(Counting(), (x(4, 3),), decomposed=True),
        "writing": Sample(Writing(), (x(4, 3),)),
        "writing_decomposed": Sample(Writing(), (x(4, 3),), decomposed=True),
        "whole": Sample(
            Whole(), (x(5, 3), ints, 4), {}, {"table": None, "index": None, "count": Dim.DYNAMIC}, (x(5, 3), ints, 9)
        ),
        "twice": Sample(Twice(), (x(3, 2), x(6, 2)), {}, {"x": {0: batch}, "y": {0: 2 * batch}}, (x(5, 2), x(10, 2))),
        "even": Sample(Even(), (x(4, 3),), {}, {"x": {0: Dim.AUTO}}, (x(6, 3),)),
        "views": Sample(Views(), (x(2, 6),)),
        "unmixed": Sample(Unmixed(), (x(3, 4),)),
        "scanned": Sample(Scanned(), (x(4, 3),)),
    }
    return {name: sample._replace(model=sample.model.eval()) for name, sample in results.items()}


def save(sample: Sample, path: str) -> None:
    """Exports a model and writes the file."""
    program = torch.export.export(sample.model, sample.args, sample.kwargs, dynamic_shapes=sample.shapes)
    torch.export.save(program.run_decompositions() if sample.decomposed else program, path)


def arrays(tree: Any) -> Any:
    """The same tree with the numbers of tensors, as JSON holds it."""
    if isinstance(tree, torch.Tensor):
        return {"dtype": str(tree.dtype).removeprefix("torch."), "data": tree.tolist()}
    if isinstance(tree, dict):
        return {k: arrays(v) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [arrays(part) for part in tree]
    return tree


def calls(sample: Sample) -> dict[str, Any]:
    """Return PyTorch's arguments, results and arguments after each call, and the state after the last one."""
    collected = []
    with torch.no_grad():
        for args in (sample.args, sample.others or sample.args):
            given = copy.deepcopy(args)
            before = arrays(given)
            results = arrays(sample.model(*given, **sample.kwargs))
            collected.append((before, dict(sample.kwargs), results, arrays(given)))
    return {"calls": collected, "state": arrays(dict(sample.model.state_dict()))}


KEPT = ("convolution", "tied", "nested", "counting_decomposed", "whole", "twice", "even", "views")
"""Models whose files are kept in the folder ``files``, so that tests without PyTorch have some to read."""
FILES = Path(__file__).parent / "files"


def keep(name: str, sample: Sample) -> None:
    """Writes a file and what PyTorch computes into the folder; paths of this machine are left out."""
    place = FILES / f"{name}.pt2"
    save(sample, str(place))
    with zipfile.ZipFile(place) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    here, library = (str(p).encode() for p in (Path(__file__).parent, Path(torch.__file__).parents[1]))
    with zipfile.ZipFile(place, "w", zipfile.ZIP_STORED) as archive:
        for member, content in members.items():
            shorter = content.replace(here, b"/models").replace(library, b"/site-packages")
            archive.writestr(zipfile.ZipInfo(member), shorter if member.endswith(".json") else content)
    place.with_suffix(".json").write_text(json.dumps(calls(sample)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    FILES.mkdir(exist_ok=True)
    for name, sample in samples().items():
        if name in KEPT:
            keep(name, sample)
