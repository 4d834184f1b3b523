"""A model in a Python file, and a model file made from it, for the tests of the commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from graphc.cli.main import main

MODELS = """
import graphc
from graphc import nn
from graphc.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 4)
        self.drop = nn.Dropout()

    def forward(self, x):
        return F.log_softmax(self.drop(self.fc(x)), dim=1)


class Sized(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size


class Two(nn.Module):
    def forward(self, a, b, scale=2.0):
        return {"sum": a + b, "pair": (a * scale, b)}


class Branching(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x
        return -x


class Wrong(nn.Module):
    def forward(self, x):
        return x @ x


class Raising(nn.Module):
    def forward(self, x):
        raise KeyError("nothing here")


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 80)

    def forward(self, x):
        return self.fc(x)


class Rectified(nn.Module):
    def forward(self, x):
        return graphc.maximum(x * 2.0, 0.5 - x)


class Nested:
    Net = Net


def make():
    return Net()


def double(x):
    return x + x


def fails():
    return 1 / 0


def number():
    return 3


net = Net()
value = 3
"""


class Result(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


Graphc = Callable[..., Result]


@pytest.fixture
def graphc(capsys: pytest.CaptureFixture[str]) -> Graphc:
    """Runs the command line in this process."""

    def run(*arguments: object) -> Result:
        capsys.readouterr()
        code = main([str(a) for a in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Result(code, captured.out, captured.err)

    return run


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A Python file with models."""
    path = tmp_path / "models.py"
    path.write_text(MODELS)
    return path


PASSES = """
from dataclasses import dataclass

from graphc.codegen.machine.costs import DEFAULT, Costs
from graphc.ir.graph.build import emit
from graphc.ir.op import REGISTRY
from graphc.passes.base import PassResult


@dataclass(frozen=True)
class Sines:
    '''Needs: any graph. Does: cosines become sines. Leaves: sines.'''

    name: str = "sines"
    after: str = ""

    def run(self, graph):
        found = [n for n in graph.nodes() if n.op.name == "cos"]
        for node in found:
            graph.replace_uses(node.result, emit(graph, REGISTRY["sin"], node.operands)[0])
            graph.erase(node)
        return PassResult(graph, len(found))


@dataclass(frozen=True)
class Fails:
    name: str = "fails"
    after: str = ""

    def run(self, graph):
        print("talk")
        return 1 / 0


late = [Sines(after="decompose")]
fails_late = Fails(after="decompose")
unknown = Sines(after="fold_batch_norm")
value = 3


def cosine(x):
    return x.cos()
"""


@pytest.fixture
def passes(tmp_path: Path) -> Path:
    """A Python file with passes and a model."""
    path = tmp_path / "passes_of_a_user.py"
    path.write_text(PASSES)
    return path


@pytest.fixture
def net(models: Path, graphc: Graphc) -> Path:
    """The model file of Net on x: f32[2,6]."""
    path = models.with_name("net.gcm")
    assert graphc("compile", f"{models}:Net", "--input", "x:f32[2,6]", "-o", path).code == 0
    return path


@pytest.fixture
def two(models: Path, graphc: Graphc) -> Path:
    """The model file of Two, which has two inputs and three outputs."""
    path = models.with_name("two.gcm")
    done = graphc("compile", f"{models}:Two", "--input", "a:f32[3]", "--input", "b:f32[3]", "-o", path)
    assert done.code == 0
    return path


@pytest.fixture
def x(tmp_path: Path) -> Path:
    """An input of Net, as a file."""
    path = tmp_path / "x.npy"
    np.save(path, np.random.default_rng(0).standard_normal((2, 6)).astype(np.float32))
    return path
