"""The net of others' graphs: models that NNSmith generates, on PyTorch and by functions of the same names on graphc.

``pip install --group fuzz``, then ``python -m tools.nets.graphs --seconds 600``. Each model is traced by torch.fx; each
node of the trace becomes a statement of a program, which is compared and reduced as random programs are.
"""

from __future__ import annotations

import inspect
import operator
import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from nnsmith.abstract.dtype import DType  # type: ignore[import-not-found]
from nnsmith.graph_gen import model_gen  # type: ignore[import-not-found]
from nnsmith.materialize import Model  # type: ignore[import-not-found]
from torch import fx, nn

from tools.nets import run
from tools.nets.builder import DTYPES, Builder, Unfit
from tools.nets.program import Program
from tools.nets.programs import judged

ELEMENTS = 1024
"""Most elements of a tensor."""
NODES = 10
MILLISECONDS = 10_000
"""Time limit of the solver for one model's constraints."""
LARGEST_INTEGER = 100.0
"""Bound of floats that are cast to integers: beyond the integers' range PyTorch's result is undefined."""

ABSENT = ("antialias",)
"""Arguments that graphc does not have, which torch.fx writes out with their defaults."""
TYPES = tuple(DType(np.dtype(d).name) for d in DTYPES.values())


def cases(seed: int) -> Iterator[str]:
    """Yield names of models without end: seed, number, whether it trains."""
    number = 0
    while True:
        yield f"{seed}/{number}/{'train' if number % 2 else 'eval'}"
        number += 1


def judge(name: str) -> run.Outcome:
    """Generate the model of a name and compare it."""
    torch.set_num_threads(1)
    seed, number, mode = name.split("/")
    try:
        program = model(int(seed) * 1_000_003 + int(number), mode == "train")
    except Unfit as error:
        return run.Outcome("dropped", str(error))
    return judged(program)


def model(seed: int, training: bool) -> Program:
    """Return the program of a generated model; raise Unfit where it needs an element type that graphc lacks."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    kind = Model.init("torch", backend_target="cpu")
    nodes = random.randint(2, NODES)
    generator = model_gen(
        opset=kind.operators(),
        method="symbolic-cinit",
        seed=seed,
        max_elem_per_tensor=ELEMENTS,
        max_nodes=nodes,
        timeout_ms=MILLISECONDS,
        dtype_choices=TYPES,
    )
    net = kind.from_gir(generator.make_concrete()).torch_model
    builder = Builder(f"graph {seed}", "graphs of others", training)
    builder.float = "f32"
    return _Writer(builder, net).program()


class _Instructions(nn.Module):
    """A generated model without the checks in its ``forward``, which cannot be traced."""

    def __init__(self, net: Any):
        super().__init__()
        self.layers = net.mlist
        self.net = [net]

    def run(self, *tensors: Any) -> list[Any]:
        net = self.net[0]
        values = dict(zip(net.ir.input_var(), tensors, strict=True))
        for function, operands, results, _ in net.instructions:
            inputs = [values[o] for o in operands]
            outputs = _called(function, inputs)
            values |= dict(zip(results, outputs if isinstance(outputs, list) else [outputs], strict=True))
        return [values[name] for name in net.ir.leaf_var()]


def _called(function: Any, inputs: list[Any]) -> Any:
    """Return the function applied; a method of tensors given as such is asked of the first operand, which may be
    traced."""
    if inspect.ismethoddescriptor(function):
        return getattr(inputs[0], function.__name__)(*inputs[1:])
    return function(*inputs)


class _Writer:
    """Writes the nodes of a trace as statements."""

    def __init__(self, builder: Builder, net: Any):
        self.builder, self.net = builder, net
        self.names: dict[fx.Node, str] = {}

    def program(self) -> Program:
        """Return the program, with the results of the model."""
        plain = _Instructions(self.net)
        count = len(self.net.ir.input_var())
        names = ", ".join(f"x{i}" for i in range(count))
        # NOTE: the tracer makes one argument for each name in the signature, and none for ``*tensors``.
        forward = eval(f"lambda self{', ' if count else ''}{names}: self.run({names})")
        traced = type("Traced", (_Instructions,), {"forward": forward})(self.net)
        graph = fx.Tracer().trace(traced)
        shapes = iter(self.net.input_like.values())
        outputs: list[str] = []
        for node in graph.nodes:
            if node.op == "placeholder":
                like = next(shapes)
                self.names[node] = self._input(tuple(like.shape), like.dtype.torch())
            elif node.op == "output":
                outputs = [self.names[n] for n in node.args[0]]
            else:
                self._statement(node, plain)
        return self.builder.program(outputs)

    def _input(self, shape: tuple[int, ...], dtype: torch.dtype) -> str:
        name = next((n for n, d in DTYPES.items() if np.dtype(d).name == str(dtype).removeprefix("torch.")), None)
        if name is None:
            raise Unfit(f"element type {dtype}")
        return self.builder.input(shape, name)

    def _statement(self, node: fx.Node, plain: nn.Module) -> None:
        if node.op == "get_attr":
            value = operator.attrgetter(str(node.target))(plain)
            self.names[node] = self._input(tuple(value.shape), value.dtype)
            return
        args = [self._text(a) for a in node.args]
        args += [f"{k}={self._text(v)}" for k, v in node.kwargs.items() if k not in ABSENT]
        if node.op == "call_module":
            layer = self.builder.layer(f"nn.{plain.get_submodule(str(node.target))!r}")
            text = f"{layer}({', '.join(args)})"
        elif node.op == "call_method":
            self._expect_castable(node)
            text = f"{args[0]}.{node.target}({', '.join(args[1:])})"
        elif node.target is getattr:
            text = f"{args[0]}.{node.args[1]}"
        elif node.target is operator.getitem:
            text = f"{args[0]}[{args[1]}]"
        else:
            text = f"{self._function(node.target)}({', '.join(args)})"
        # What gives several tensors is written where one of them is taken.
        only_fields = all(user.target is getattr and user.args[1] in ("values", "indices") for user in node.users)
        self.names[node] = text if node.users and only_fields else self.builder.let(text)

    def _function(self, target: Any) -> str:
        name = target.__name__
        if getattr(torch, name, None) is target:
            return f"t.{name}"
        if getattr(nn.functional, name, None) is target:
            return f"F.{name}"
        if getattr(torch.Tensor, name, None) is target:
            return f"t.{name}"
        raise Unfit(f"function {name}")

    def _expect_castable(self, node: fx.Node) -> None:
        """Raise Unfit for casts of NaN and of large floats to integers, which are undefined."""
        if node.target != "to" or not any(str(a).startswith("torch.int") for a in (*node.args, *node.kwargs.values())):
            return
        operand = self.builder.values[self._text(node.args[0])].detach()
        if operand.is_floating_point() and not bool((operand.abs() < LARGEST_INTEGER).all()):
            raise Unfit("an undefined cast")

    def _text(self, value: Any) -> str:
        """Return an argument of a node as text."""
        if isinstance(value, fx.Node):
            return self.names[value]
        if isinstance(value, (tuple, list)):
            items = ", ".join(self._text(v) for v in value)
            return f"({items}{',' if len(value) == 1 else ''})" if isinstance(value, tuple) else f"[{items}]"
        if isinstance(value, torch.dtype):
            return f"t.{str(value).removeprefix('torch.')}"
        return repr(value)


NET = run.Net("graphs", (__doc__ or "").partition("\n")[0], cases, judge)

if __name__ == "__main__":
    sys.exit(run.main(NET))
