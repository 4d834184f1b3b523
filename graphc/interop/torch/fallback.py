"""Division of a graph between graphc and PyTorch, with a warning that names each operator left to PyTorch."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from graphc.base.errors import FallbackWarning, GraphcError, UnsupportedError
from graphc.base.location import Location
from graphc.base.records import dataclass
from graphc.interop.aten.run import step_of
from graphc.interop.aten.table import find
from graphc.interop.torch.fx import DTYPES, place_of, read_node, target_of
from graphc.interop.torch.parts import LEAST, UNREAD, Division, NativeSubgraph, is_note, owner, value_of
from graphc.interop.torch.sizes import is_of_sizes
from graphc.interop.torch.writes import has_other_writes

TORCH, ERROR = "torch", "error"
"""Treatment of operators that graphc cannot compute."""
_INNER = ("graphc", "torch", "contextlib")
"""Packages whose frames do not belong to the user."""
_WORKSPACES = {"aten.mkldnn_rnn_layer.default": 3}
"""Indices of results that only PyTorch's kernels can produce, by operator."""
NAMED = 8
"""Maximum number of operators that a warning names."""
Compiler = Callable[[fx.GraphModule, Sequence[Any], Collection[int]], Callable[..., Any]]
"""Function that compiles a graph to native code, given stand-ins for its arguments and the indices of weights."""


@dataclass(frozen=True)
class Operator:
    """Operator of a graph, and who computes it."""

    name: str
    """Name such as ``aten.add.Tensor``."""
    place: Location
    reason: str = ""
    """Reason why PyTorch computes it. Empty where graphc does."""

    @property
    def is_native(self) -> bool:
        """Check whether graphc computes it."""
        return not self.reason


@dataclass(frozen=True)
class Shares:
    """Division of a graph's operators between graphc and PyTorch."""

    operators: tuple[Operator, ...]
    """Operators in the order of the graph."""
    parts: int
    """Number of native programs."""

    @property
    def refused(self) -> tuple[Operator, ...]:
        """Return the operators that PyTorch computes."""
        return tuple([o for o in self.operators if not o.is_native])

    def __str__(self) -> str:
        refused, count = self.refused, len(self.operators)
        share = f"{100 * len(refused) / max(count, 1):.3g} %"
        lines = [
            f"PyTorch computes {len(refused)} of {count} operators ({share}) of a graph, graphc {self._native_count()}"
        ]
        groups: dict[Operator, int] = {}
        for operator in refused:
            groups[operator] = groups.get(operator, 0) + 1
        for operator, times in list(groups.items())[:NAMED]:
            number = f" ({times} times)" if times > 1 else ""
            lines.append(f"  {operator.name}{number}: {operator.reason}")
            if origin := operator.place.describe():
                lines.append(f"    from   {origin}")
        if len(groups) > NAMED:
            lines.append(f"  and {len(groups) - NAMED} more")
        lines.append(
            '  try    graphc.interop.torch.explain(model, ...) lists all; options={"fallback": "error"} refuses'
        )
        return "\n".join(lines)

    def _native_count(self) -> str:
        rest = len(self.operators) - len(self.refused)
        return f"{rest} in {self.parts} program{'s' * (self.parts != 1)}" if rest else "none"


@dataclass(frozen=True)
class _Divided:
    """Callable for a graph. Takes a list, which it empties."""

    run: Callable[..., Any]
    division: Division | None
    """None where one program computes the whole graph."""
    native: tuple[Callable[..., Any], ...]
    """Native programs in it."""


class CompileObserver(Protocol):
    """Observer of compiled graphs and programs, which may replace them."""

    def on_program(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Observe a native program. Returns it or a replacement."""
        ...

    def on_graph(
        self, module: fx.GraphModule, shares: Shares, run: Callable[..., Any], native: Sequence[Callable[..., Any]]
    ) -> Callable[..., Any]:
        """Observe a compiled graph: who computes which operators, its callable, and the native programs in it.

        Returns the callable or a replacement.
        """
        ...


WATCH: ContextVar[CompileObserver | None] = ContextVar("graphc_watch", default=None)


def divide(
    module: fx.GraphModule, examples: Sequence[Any], weights: Collection[int], compiler: Compiler, fallback: str = TORCH
) -> Callable[..., Any]:
    """Compile as much of a graph of ATen operators as possible with ``compiler``, and leave the rest to PyTorch.

    Warns once where PyTorch computes operators (FallbackWarning). Raises UnsupportedError instead where ``fallback`` is
    ``error``.
    """
    watch = WATCH.get()

    def watched(*args: Any) -> Callable[..., Any]:
        program = compiler(*args)
        return watch.on_program(program) if watch else program

    divider = _Divider(module, examples, weights, watched, fallback)
    divided = divider.as_one_program() or divider.divided()
    if watch is None and not divider.reasons:
        return divided.run
    shares = divider.shares(divided.division or Division(module, ()))
    if shares.refused:
        _warn(shares)
    return watch.on_graph(module, shares, divided.run, divided.native) if watch else divided.run


class _Divider:
    def __init__(
        self,
        module: fx.GraphModule,
        examples: Sequence[Any],
        weights: Collection[int],
        compiler: Compiler,
        fallback: str,
    ):
        self.module = module
        self.compiler = compiler
        self.fallback = fallback
        self.inputs = [n for n in module.graph.nodes if n.op == "placeholder"]
        self.examples = dict(zip(self.inputs, examples, strict=True))
        self.weights = {self.inputs[i] for i in weights}
        self.numbers = weights
        self.reasons: dict[fx.Node, str] = {}
        for node in module.graph.nodes:
            if reason := refusal(node):
                self._refuse(node, reason)
        self.compiled: dict[tuple[fx.Node, ...], Callable[..., Any]] = {}

    def as_one_program(self) -> _Divided | None:
        """Return the whole graph as one program, or None where graphc cannot compute all of it."""
        if self.reasons or not all(map(_is_taken, self.examples.values())) or has_other_writes(self.module):
            return None
        try:
            run = self.compiler(self.module, list(self.examples.values()), self.numbers)
        # NOTE: any exception: the warning names it, see _blame.
        except Exception as error:
            nodes = {n.name: n for n in self.module.graph.nodes}
            self._blame(error, nodes, [n for n in nodes.values() if n.op == "call_function"])
            return None
        return _Divided(run, None, (run,))

    def divided(self) -> _Divided:
        """Leave the refused operators to PyTorch, and more of them for each subgraph that fails to compile."""
        while True:
            division = Division(self.module, self.reasons)
            subgraphs = division.subgraphs()
            if all([self._make(subgraph) for subgraph in subgraphs]):
                functions = [self.compiled[subgraph.nodes] for subgraph in subgraphs]
                joined = division.joined(list(zip(subgraphs, functions, strict=True)))
                return _Divided(_boxed(joined), division, tuple(functions))

    def _make(self, subgraph: NativeSubgraph) -> bool:
        """Compile a subgraph. Returns False where that fails."""
        if subgraph.nodes in self.compiled:
            return True
        examples = [self.examples.get(n, value_of(n)) for n in subgraph.inputs]
        weights = [i for i, n in enumerate(subgraph.inputs) if n in self.weights]
        try:
            self.compiled[subgraph.nodes] = self.compiler(subgraph.module, examples, weights)
        # NOTE: any exception, as in as_one_program.
        except Exception as error:
            self._blame(error, subgraph.sources, subgraph.nodes)
            return False
        return True

    def _blame(self, error: Exception, sources: Mapping[str, fx.Node], nodes: Sequence[fx.Node]) -> None:
        """Refuse the operator that raised an error, and operators applied in the same way.

        Refuses all ``nodes`` where the error does not belong to one operator.

        Any exception counts. Rules apply functions of graphc to arbitrary models, and a bug in a rule or a pass must
        cost the operator its speed but not the user the model. FallbackWarning shows its class and message, and the
        option "error" raises it.
        """
        what = error.what if isinstance(error, GraphcError) else f"{type(error).__name__}: {error}"
        step = step_of(error)
        if step is None or step.name not in sources:
            if self.fallback == ERROR:
                raise error
            for node in nodes:
                self._refuse(node, what)
            return
        kind = _kind(sources[step.name])
        for node in self.module.graph.nodes:
            if _kind(node) == kind:
                self._refuse(node, what)

    def _refuse(self, node: fx.Node, reason: str) -> None:
        remedy = 'use options={"fallback": "torch"}, the default: PyTorch computes what graphc cannot'
        if node.meta.get(UNREAD):
            remedy = "run the model without torch.compile, and report this bug"
        if self.fallback == ERROR or node.meta.get(UNREAD):
            raise UnsupportedError(
                f"{_name(node)}: {reason}",
                where=str(node.format_node()),
                origin=place_of(node).describe() or None,
                remedy=remedy,
            )
        self.reasons.setdefault(owner(node), reason)

    def shares(self, division: Division) -> Shares:
        """Return who computes which operators in this division."""
        operators = []
        for node in self.module.graph.nodes:
            if node.op != "call_function" or owner(node) is not node or is_note(node):
                continue
            reason = self.reasons.get(node, "")
            if node in division.lonely:
                reason = f"fewer than {LEAST} adjacent operators are not worth a program"
            operators.append(Operator(_name(node), place_of(node), reason))
        return Shares(tuple(operators), len(division.native))


def refusal(node: fx.Node) -> str:
    """Return the reason why graphc cannot compute a node, as far as known before a trace, or an empty string."""
    if node.op != "call_function" or owner(node) is not node:
        return ""
    for related in (*node.all_input_nodes, node):
        if reason := _refused_value(value_of(related)):
            return reason
        if related.op == "placeholder" and isinstance(value_of(related), torch.SymFloat):
            return "an argument is a fraction"
    try:
        target = read_node(node).target
    except UnsupportedError as error:
        return error.what
    workspace = _WORKSPACES.get(target)
    if workspace is not None and any(u.args[1:] == (workspace,) and u.users for u in node.users):
        return "PyTorch's backward operator needs the workspace of PyTorch's own kernel"
    return "" if find(target) else "not among the operators that graphc computes"


def _refused_value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return next(filter(None, map(_refused_value, value)), "")
    if not isinstance(value, torch.Tensor):
        is_taken = isinstance(value, torch.SymFloat) and is_of_sizes(value.node.expr)
        is_number = isinstance(value, (torch.SymFloat, torch.SymBool))
        return f"graphc has no {type(value).__name__}" if is_number and not is_taken else ""
    if value.dtype not in DTYPES:
        return f"graphc has no tensors of {value.dtype}"
    if value.device.type != "cpu":
        return f"graphc has no tensors on the device {value.device}"
    if value.layout is not torch.strided:
        return f"graphc has no tensors of {value.layout}"
    plain = type(value) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer, FakeTensor)
    return "" if plain else f"graphc has no tensors of {type(value).__name__}"


def _is_taken(example: Any) -> bool:
    return isinstance(example, (int, torch.SymInt)) or (
        isinstance(example, torch.Tensor) and not _refused_value(example)
    )


def _name(node: fx.Node) -> str:
    return target_of(node.target)


def _kind(node: fx.Node) -> Any:
    """Return how an operator is applied: element types and ranks of its tensors, and its other arguments."""
    if node.op != "call_function":
        return node

    def description(operand: fx.Node) -> Any:
        value = value_of(operand)
        return f"{value.dtype}[{value.dim()}]" if isinstance(value, torch.Tensor) else type(value).__name__

    return _name(node), repr(fx.map_arg((node.args, node.kwargs), description))


def _boxed(joined: fx.GraphModule) -> Callable[..., Any]:
    function = joined.forward

    def run(args: list[Any]) -> Any:
        return function(args)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def _warn(shares: Shares) -> None:
    place = next((o.place for o in shares.refused if o.place.file), None)
    file, line = (place.file, place.line) if place else _caller()
    warnings.warn_explicit(str(shares), FallbackWarning, file, max(line, 1))


def _caller() -> tuple[str, int]:
    """Return the user's line that called a model whose operators all come from PyTorch's own modules."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INNER:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
