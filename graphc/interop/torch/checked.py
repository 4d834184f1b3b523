"""Programs whose first call is compared with PyTorch's own; where they differ, a program is written that shows it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import fx

from graphc.base.errors import CompileError, FallbackWarning
from graphc.base.location import Location
from graphc.checks import reduce
from graphc.interop.aten import sample
from graphc.interop.aten.graph import refs
from graphc.interop.torch.fallback import ERROR
from graphc.interop.torch.fx import place_of, read_node
from graphc.interop.torch.parts import is_random
from graphc.interop.torch.program import Program
from graphc.ir.graph.graph import input_class, input_path


class CheckedProgram(Program):
    """A program that PyTorch takes the place of where its first call gives something else. One that draws random
    numbers is not compared."""

    def __init__(self, module: fx.GraphModule, fallback: str, *args: Any):
        """``module`` is the graph for PyTorch, ``args`` are those of Program. Where ``fallback`` is ``error``, the call
        that differs raises CompileError."""
        super().__init__(*args)
        self._module = module
        self._fallback = fallback
        self._is_known = any(is_random(n) for n in module.graph.nodes)
        self._is_wrong = False

    def __call__(self, args: list[Any]) -> list[Any]:
        """The results for these arguments; the list is emptied."""
        if not self._is_known:
            return self._compared(args)
        if not self._is_wrong:
            return super().__call__(args)
        given = list(args)
        args.clear()
        return list(self._module(*given))

    def _compared(self, args: list[Any]) -> list[Any]:
        given = [_copy(a) for a in args]
        with torch.no_grad():
            expected = list(self._module(*[_copy(a) for a in given]))
        found = super().__call__(args)
        what = next(filter(None, [_differing(*pair) for pair in zip(found, expected, strict=True)]), "")
        self._is_known, self._is_wrong = True, bool(what)
        if not what:
            return found
        shown, place = self._shown(given)
        text = f"graphc's results are not PyTorch's: {what}; {shown}"
        if self._fallback == ERROR:
            raise CompileError(text, origin=place.describe() or None, remedy="please report it with that file")
        text += f"\n  PyTorch computes this graph from now on\n  from   {place.describe()}"
        warnings.warn(text, FallbackWarning, stacklevel=2)
        return expected

    def _shown(self, args: list[Any]) -> tuple[str, Location]:
        """What shows the difference, and the line of the user that it comes from where one is known."""
        arguments = self._given(args)
        fault = reduce.fault_of(self.graph, arguments)
        if fault is not None:
            return f"{reduce.report(self.graph, arguments, fault)} shows it", Location()
        search = _Search(self._module)
        with torch.no_grad():
            search.run(*args)
        if search.path is not None:
            return f"{search.path} shows it", search.place
        path = reduce.written(self.graph, arguments, "the results are not PyTorch's")
        return f"no operator by itself differs, the graph is {path}", Location()

    def _given(self, args: list[Any]) -> list[np.ndarray]:
        """The arrays that the graph is applied to, in its own order."""
        arrays = self.arrays(args)
        given = iter([arrays[i] for i in self._inputs])
        return [next(given) if input_class(v) == "input" else arrays[int(input_path(v))] for v in self.graph.inputs]


class _Search(fx.Interpreter):
    """Runs a graph on PyTorch until an operator of it gives something else on graphc."""

    path: Path | None = None
    place = Location()

    def run_node(self, n: fx.Node) -> Any:
        found = super().run_node(n)
        if n.op == "call_function" and self.path is None:
            self._compare(n, found)
        return found

    def _compare(self, node: fx.Node, found: Any) -> None:
        given = {n.name: self.env[n] for n in node.all_input_nodes}
        results = found if isinstance(found, (list, tuple)) else [found]
        if not all(isinstance(v, torch.Tensor) for v in given.values()):
            return
        expected = [r.detach().numpy() if isinstance(r, torch.Tensor) else None for r in results]
        step = read_node(node)
        values = {name: given[name].detach().numpy() for name in refs((step.args, step.kwargs))}
        if what := sample.fault_of(step, values, expected):
            self.path, self.place = sample.written(step, values, expected, what), place_of(node)


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def _differing(found: Any, expected: Any) -> str:
    if not isinstance(expected, torch.Tensor):
        return "" if found == expected else f"{found} in place of {expected}"
    return sample.differing(found.detach().numpy(), expected.detach().numpy())
