"""What graphc cannot take of a graph goes to PyTorch, with a warning that names each operator and its line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from graphc.base.errors import FallbackWarning, GraphcError, UnsupportedError
from graphc.base.location import Location
from graphc.interop.aten.run import step_of
from graphc.interop.aten.table import find
from graphc.interop.torch.fx import DTYPES, place_of, read_node, target_of
from graphc.interop.torch.parts import LEAST, UNREAD, Division, Part, is_note, owner, value_of
from graphc.interop.torch.sizes import is_of_sizes
from graphc.interop.torch.writes import has_other_writes

TORCH, ERROR = "torch", "error"
"""What to do with what graphc cannot take."""
REFUSING = 'options={"fallback": "error"}'
_INNER = ("graphc", "torch", "contextlib")
"""Packages whose frames are none of the user."""
_WORKSPACES = {"aten.mkldnn_rnn_layer.default": 3}
"""Results of operators that PyTorch's kernels alone can make, by their numbers."""
NAMED = 8
"""Operators that a warning names at most."""
Compiler = Callable[[fx.GraphModule, Sequence[Any], Collection[int]], Callable[..., Any]]
"""Makes native code of a graph: of what stands for its arguments, and the numbers of those that are weights."""


@dataclass(frozen=True)
class Operator:
    """An operator of a graph and who computes it."""

    name: str
    """``aten.add.Tensor``."""
    place: Location
    reason: str = ""
    """Why PyTorch does; empty where graphc does."""

    @property
    def is_native(self) -> bool:
        """Whether graphc computes it."""
        return not self.reason


@dataclass(frozen=True)
class Shares:
    """Who computes what of a graph."""

    operators: tuple[Operator, ...]
    """In the order of the graph."""
    parts: int
    """How many native programs there are."""

    @property
    def refused(self) -> tuple[Operator, ...]:
        """What PyTorch computes."""
        return tuple([o for o in self.operators if not o.is_native])

    def __str__(self) -> str:
        here, count = self.refused, len(self.operators)
        share = f"{100 * len(here) / max(count, 1):.3g} %"
        lines = [f"PyTorch computes {len(here)} of {count} operators ({share}) of a graph, graphc {self._rest()}"]
        groups: dict[Operator, int] = {}
        for operator in here:
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

    def _rest(self) -> str:
        rest = len(self.operators) - len(self.refused)
        return f"{rest} in {self.parts} program{'s' * (self.parts != 1)}" if rest else "none"


@dataclass(frozen=True)
class _Divided:
    """A graph that can be called, with a list that it empties."""

    run: Callable[..., Any]
    division: Division | None
    """None where all of it is one program."""
    native: tuple[Callable[..., Any], ...]
    """The native programs in it."""


class Watch(Protocol):
    """Who wants to know of each graph that is compiled, and may put something into the place of what is made."""

    def part(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Called with each native program."""
        ...

    def made(
        self, module: fx.GraphModule, shares: Shares, run: Callable[..., Any], native: Sequence[Callable[..., Any]]
    ) -> Callable[..., Any]:
        """Called with each graph, who computes what of it, what computes it, and the native programs in that."""
        ...


WATCH: ContextVar[Watch | None] = ContextVar("graphc_watch", default=None)


def divide(
    module: fx.GraphModule, examples: Sequence[Any], weights: Collection[int], compiler: Compiler, fallback: str = TORCH
) -> Callable[..., Any]:
    """What computes a graph of ATen operators: native code that ``compiler`` makes of as much of it as it can, and
    PyTorch.

    Warns once where PyTorch has a share (FallbackWarning), or raises UnsupportedError where ``fallback`` is ``error``.
    """
    watch = WATCH.get()

    def watched(*args: Any) -> Callable[..., Any]:
        made = compiler(*args)
        return watch.part(made) if watch else made

    divider = _Divider(module, examples, weights, watched, fallback)
    found = divider.whole() or divider.divided()
    if watch is None and not divider.reasons:
        return found.run
    shares = divider.shares(found.division or Division(module, ()))
    if shares.refused:
        _warn(shares)
    return watch.made(module, shares, found.run, found.native) if watch else found.run


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
        self.made: dict[tuple[fx.Node, ...], Callable[..., Any]] = {}

    def whole(self) -> _Divided | None:
        """All of the graph as one program, or None."""
        if self.reasons or not all(map(_is_taken, self.examples.values())) or has_other_writes(self.module):
            return None
        try:
            run = self.compiler(self.module, list(self.examples.values()), self.numbers)
        # NOTE: whatever it is, the warning names it; see _blame.
        except Exception as error:
            nodes = {n.name: n for n in self.module.graph.nodes}
            self._blame(error, nodes, [n for n in nodes.values() if n.op == "call_function"])
            return None
        return _Divided(run, None, (run,))

    def divided(self) -> _Divided:
        """The graph with what is refused left to PyTorch; more of it with each part that proves to be impossible."""
        while True:
            division = Division(self.module, self.reasons)
            parts = division.parts()
            if all([self._make(part) for part in parts]):
                functions = [self.made[part.nodes] for part in parts]
                joined = division.joined(list(zip(parts, functions, strict=True)))
                return _Divided(_boxed(joined), division, tuple(functions))

    def _make(self, part: Part) -> bool:
        """Whether there is a program for a part."""
        if part.nodes in self.made:
            return True
        examples = [self.examples.get(n, value_of(n)) for n in part.inputs]
        weights = [i for i, n in enumerate(part.inputs) if n in self.weights]
        try:
            self.made[part.nodes] = self.compiler(part.module, examples, weights)
        # NOTE: as above.
        except Exception as error:
            self._blame(error, part.sources, part.nodes)
            return False
        return True

    def _blame(self, error: Exception, sources: Mapping[str, fx.Node], nodes: Sequence[fx.Node]) -> None:
        """Refuses the operator in which an error was raised, and those that are applied in the same way; all ``nodes``
        where it was none of one operator.

        Any exception counts: rules apply functions of graphc to whatever a model gives, and a fault in one of them, or
        in a pass, must cost the operator its speed and not the user the model. None is silent: its class and message
        stand in FallbackWarning, and it is raised where the option says so."""
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
        remedy = 'options={"fallback": "torch"}, the default, has PyTorch compute what graphc cannot'
        if node.meta.get(UNREAD):
            remedy = "the model without torch.compile; please report it"
        if self.fallback == ERROR or node.meta.get(UNREAD):
            raise UnsupportedError(
                f"{_name(node)}: {reason}",
                where=str(node.format_node()),
                origin=place_of(node).describe() or None,
                remedy=remedy,
            )
        self.reasons.setdefault(owner(node), reason)

    def shares(self, division: Division) -> Shares:
        """Who computes what of a graph that is divided so."""
        found = []
        for node in self.module.graph.nodes:
            if node.op != "call_function" or owner(node) is not node or is_note(node):
                continue
            reason = self.reasons.get(node, "")
            if node in division.lonely:
                reason = f"fewer than {LEAST} operators beside those of PyTorch are not worth a program"
            found.append(Operator(_name(node), place_of(node), reason))
        return Shares(tuple(found), len(division.native))


def refusal(node: fx.Node) -> str:
    """Why graphc cannot compute a node as far as can be seen before a trace, or nothing."""
    if node.op != "call_function" or owner(node) is not node:
        return ""
    for given in (*node.all_input_nodes, node):
        if reason := _refused_value(value_of(given)):
            return reason
        if given.op == "placeholder" and isinstance(value_of(given), torch.SymFloat):
            return "a fraction among the arguments"
    try:
        target = read_node(node).target
    except UnsupportedError as error:
        return error.what
    workspace = _WORKSPACES.get(target)
    if workspace is not None and any(u.args[1:] == (workspace,) and u.users for u in node.users):
        return "PyTorch's backward operator needs what its own kernel keeps"
    return "" if find(target) else "not among the operators that graphc computes"


def _refused_value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return next(filter(None, map(_refused_value, value)), "")
    if not isinstance(value, torch.Tensor):
        is_taken = isinstance(value, torch.SymFloat) and is_of_sizes(value.node.expr)
        is_number = isinstance(value, (torch.SymFloat, torch.SymBool))
        return f"numbers of {type(value).__name__}" if is_number and not is_taken else ""
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
    """How an operator is applied: to which types of tensors, of how many dimensions, with which other arguments."""
    if node.op != "call_function":
        return node

    def shown(given: fx.Node) -> Any:
        value = value_of(given)
        return f"{value.dtype}[{value.dim()}]" if isinstance(value, torch.Tensor) else type(value).__name__

    return _name(node), repr(fx.map_arg((node.args, node.kwargs), shown))


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
    """The line of the user that called a model all of whose operators come from PyTorch's own modules."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INNER:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
