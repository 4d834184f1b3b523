"""Programs whose first call is compared with PyTorch, and reproducers of the differences."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import fx

from graphc.base.errors import CompileError, FallbackWarning
from graphc.base.location import Location
from graphc.checks.reduce import fault_of
from graphc.checks.report import report, written
from graphc.interop.aten import sample
from graphc.interop.aten.graph import refs
from graphc.interop.torch.fallback import ERROR
from graphc.interop.torch.fx import memory_of, place_of, read_node
from graphc.interop.torch.parts import is_random
from graphc.interop.torch.program import TorchProgram
from graphc.ir.graph.graph import input_class, input_path


class CheckedProgram(TorchProgram):
    """Program that PyTorch replaces if its first call gives different results. Random programs are not compared."""

    def __init__(self, module: fx.GraphModule, fallback: str, *args: Any):
        """Compile the program. ``module`` is the graph for PyTorch, ``args`` are the arguments of Program.

        With ``fallback`` ``error`` a call with different results raises CompileError.
        """
        super().__init__(*args)
        self._module = module
        self._fallback = fallback
        self._is_decided = any(is_random(n) for n in module.graph.nodes)
        self._is_wrong = False

    def __call__(self, args: list[Any]) -> list[Any]:
        """Return the results for these arguments. Empties the list."""
        if not self._is_decided:
            return self._compared(args)
        if not self._is_wrong:
            return super().__call__(args)
        arguments = list(args)
        args.clear()
        return list(self._module(*arguments))

    def _compared(self, args: list[Any]) -> list[Any]:
        copies = [_copy(a) for a in args]
        with torch.no_grad():
            expected = list(self._module(*[_copy(a) for a in copies]))
        results = super().__call__(args)
        what = next(filter(None, [_differing(*pair) for pair in zip(results, expected, strict=True)]), "")
        self._is_decided, self._is_wrong = True, bool(what)
        if not what:
            return results
        reproducer, location = self._reproduced(copies)
        text = f"graphc's results differ from PyTorch's: {what}; {reproducer}"
        if self._fallback == ERROR:
            raise CompileError(text, origin=location.describe() or None, remedy="report this bug with that file")
        text += f"\n  PyTorch computes this graph from now on\n  from   {location.describe()}"
        warnings.warn(text, FallbackWarning, stacklevel=2)
        return expected

    def _reproduced(self, args: list[Any]) -> tuple[str, Location]:
        """Return a description of a file that shows the difference, and the user's line if known."""
        arguments = self._graph_arguments(args)
        fault = fault_of(self.graph, arguments)
        if fault is not None:
            return f"graphc check {report(self.graph, arguments, fault)} reproduces it", Location()
        search = _FaultSearch(self._module)
        with torch.no_grad():
            search.run(*args)
        if search.path is not None:
            return f"graphc check {search.path} reproduces it", search.location
        path = written(self.graph, arguments, "the results are not PyTorch's")
        return f"no operator by itself differs, the graph is {path}", Location()

    def _graph_arguments(self, args: list[Any]) -> list[np.ndarray]:
        """Return the arrays to which the graph is applied, in its own order."""
        arrays = self.arrays(args)
        inputs = iter([arrays[i] for i in self._inputs])
        return [next(inputs) if input_class(v) == "input" else arrays[int(input_path(v))] for v in self.graph.inputs]


class _FaultSearch(fx.Interpreter):
    """Interpreter that runs a graph on PyTorch until graphc differs in one operator."""

    path: Path | None = None
    location = Location()

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        if n.op == "call_function" and self.path is None:
            self._compare(n, result)
        return result

    def _compare(self, node: fx.Node, result: Any) -> None:
        inputs = {n.name: self.env[n] for n in node.all_input_nodes}
        results = result if isinstance(result, (list, tuple)) else [result]
        if not all(isinstance(v, torch.Tensor) for v in inputs.values()):
            return
        expected = [memory_of(r.detach()) if isinstance(r, torch.Tensor) else None for r in results]
        step = read_node(node)
        values = {name: memory_of(inputs[name].detach()) for name in refs((step.args, step.kwargs))}
        if what := sample.fault_of(step, values, expected):
            self.path, self.location = sample.written(step, values, expected, what), place_of(node)


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def _differing(result: Any, expected: Any) -> str:
    if not isinstance(expected, torch.Tensor):
        return "" if result == expected else f"{result} instead of {expected}"
    return sample.differing(memory_of(result.detach()), memory_of(expected.detach()))
