"""Traces of functions whose arguments have named dimensions: which of them fits a call, and what it is for one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from graphc.base import config
from graphc.base.errors import ArgumentError, GraphcError
from graphc.base.locks import Lock
from graphc.base.sizes.assumptions import Assumptions
from graphc.base.sizes.named_dims import chosen_sizes
from graphc.base.sizes.shape_patterns import ShapePatterns
from graphc.base.sizes.size import Dimension, SizeNumber, at
from graphc.base.sizes.size_limits import limits
from graphc.calls.auto_dims import AutoDims
from graphc.calls.number_places import Given, GivenNumbers
from graphc.calls.outside import Outside
from graphc.ir.graph.graph import Graph, input_class, input_equals
from graphc.ir.graph.interpret import assumed, bind
from graphc.tensors.structure import Branch, Leaf, Static, Structure, shape_of
from graphc.tensors.tensor import Tensor
from graphc.tracing.dims import Dims
from graphc.tracing.trace import Traced, graph_name

Sizes = Mapping[Dimension, int]
REMEMBERED = 256
"""Of so many different shapes of arguments it is remembered what their calls are."""
MOST = 16
"""Traces that are kept for the same arguments: with other assumptions, and for other states of what is outside."""


class SizedCall(NamedTuple):
    """The shapes of a call as patterns of named dimensions, and the sizes that these have in it."""

    patterns: ShapePatterns
    sizes: Sizes
    bound: Sizes
    """Those of dimensions that have a common size, for which there are programs of their own."""
    shapes: Sequence[tuple[Any, ...]]
    """The patterns for these sizes."""

    @staticmethod
    def of(patterns: ShapePatterns, sizes: Sizes) -> SizedCall:
        """The call with these sizes."""
        bound = {d: n for d, n in sizes.items() if n in d.common}
        if not bound:
            return SizedCall(patterns, sizes, bound, patterns.shapes)
        values = chosen_sizes({d.name: d for d in sizes}, {d.name: n for d, n in bound.items()})
        return SizedCall(patterns, sizes, bound, [tuple([at(n, values) for n in s]) for s in patterns.shapes])

    def key(self, key: tuple[Any, ...], program: bool = False) -> tuple[Any, ...]:
        """The key of a call (see guards.Key) with the patterns in the place of its shapes; that of its ``program`` has
        common sizes in them."""
        shape, leaves, *rest = key
        shapes = self.shapes if program else self.patterns.shapes
        return (shape, tuple([(t[0], s, *t[2:]) for t, s in zip(leaves, shapes, strict=True)]), *rest)

    def arguments(self) -> dict[str, Any]:
        """What ``trace_function`` takes of it."""
        return {"patterns": self.patterns, "assumptions": Assumptions(self.sizes)}


class DimsOfCalls:
    """The named dimensions in the arguments of a function, as they were declared, or found from its calls."""

    def __init__(self, dims: Any, function: Callable[..., Any], names: Sequence[str] = ()):
        """``dims`` as ``compile`` takes it; for a function that runs a graph None stands for the dimensions of that.
        ``names`` are those of the arguments where the signature of the function does not say so."""
        graph = getattr(function, "_graph", None)
        if dims is None and isinstance(graph, Graph) and graph.dims:
            inputs = [v for v in graph.inputs if input_class(v) == "input"]
            dims = [v.shape if input_equals(v) is None else input_equals(v) for v in inputs]
        self._auto = AutoDims(graph_name(function), function, names) if isinstance(dims, str) else None
        if isinstance(dims, str) and dims != "auto":
            raise ArgumentError(f"dims is {dims!r}", remedy="dims={'x': (gc.Dim('batch'),)}, or 'auto'")
        self._declared = None if dims is None or self._auto else Dims(dims, function, names)
        self.is_any = dims is not None
        """Whether there can be some."""
        self._lock = Lock()
        self._known: dict[Any, tuple[int, SizedCall | None]] = {}
        self._patterns: dict[Any, ShapePatterns] = {}
        """That of the last call that was not known, by structure and shapes: other numbers have the same."""

    def with_numbers(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call with tensors in the places of whole numbers that are sizes."""
        return (args, kwargs) if self._declared is None else self._declared.with_numbers(args, kwargs)

    def of(self, structure: Structure | int, leaves: Sequence[Tensor]) -> SizedCall | None:
        """The sizes in a call; None where none has a name. Raises ArgumentError and ShapeError."""
        if not self.is_any:
            return None
        form = structure, tuple([(leaf.dtype, shape_of(leaf)) for leaf in leaves])
        known = self._known.get(form)
        if known is None or known[0] != (self._auto.changes if self._auto else 0):
            with self._lock:
                found = self._made(structure, leaves)
                known = self._auto.changes if self._auto else 0, found
                if len(self._known) >= REMEMBERED:
                    self._known.clear()
                self._known[form] = known
        return known[1]

    def _made(self, structure: Structure | int, leaves: Sequence[Tensor]) -> SizedCall | None:
        shapes = [shape_of(leaf) for leaf in leaves]
        if self._declared is not None:
            form = structure, tuple([leaf._data.shape for leaf in leaves])
            patterns = self._patterns.get(form)
            if patterns is None:
                self._patterns.clear()
                patterns = self._patterns[form] = self._declared.patterns(structure, leaves)
        else:
            assert self._auto is not None
            patterns = self._auto.patterns(structure, [(t.dtype, s) for t, s in zip(leaves, shapes, strict=True)])
        return None if patterns is None else SizedCall.of(patterns, patterns.solve(shapes))


Program = TypeVar("Program")


def keys_of(call: SizedCall | None, key: Any) -> tuple[Any, ...]:
    """The keys under which a program for a call may be known; the last one is that of its very sizes."""
    return (key,) if call is None else (call.key(key, program=True), key)


def program_for(
    trace: SizedTrace, call: SizedCall | None, key: Any, make: Callable[[Any, Traced], Program], name: str
) -> tuple[Program, Any]:
    """A program of a trace, made for a key, and that key: for all sizes of the named dimensions of a call that have no
    common size, or where that cannot be made for those of the call."""
    *general, alone = keys_of(call, key)
    if call is None:
        return make(alone, trace.traced), alone
    if trace.is_general:
        try:
            return make(general[0], trace.at(call.bound)), general[0]
        except GraphcError as error:
            # NOTE: what is wrong for other reasons is so for the sizes of the call, too, and is raised there.
            program = make(alone, trace.at(call.sizes))
            trace.is_general = False
            config.logger("compile").warning("%s is compiled for each size of its dimensions: %s", name, error.what)
            return program, alone
    return make(alone, trace.at(call.sizes)), alone


class SizedTrace:
    """One trace of a function, from which programs are made; for calls without dimensions it is what was traced."""

    def __init__(self, traced: Traced, outside: Outside, numbers: GivenNumbers, drawn: Any = None):
        self.traced = traced
        self.outside = outside
        self.numbers = numbers
        """How its programs take the numbers that each call gives."""
        self.drawn: dict[Any, dict[str, int]] = drawn or {}
        """In the middle of a module's call: how often its modules have drawn after this part of it."""
        self.is_general = True
        """False where no program for all sizes could be made of it."""
        self._account = outside.account()
        self._refused: Sizes | None = None

    def fitting(self, sizes: Sizes, given: Given) -> list[Tensor] | None:
        """The numbers that its programs take in a call with these sizes and numbers; None where it does not hold for
        that, or what is outside is not as it was."""
        if self.traced.assumptions.broken(sizes) is not None:
            self._refused = sizes
            return None
        return self.numbers.tensors(given) if self._account.holds() else None

    def why(self) -> list[str]:
        """Why it did not fit."""
        found = [*self.numbers.why(), *self._account.why()]
        broken = None if self._refused is None else self.traced.assumptions.broken(self._refused)
        if broken is not None and self._refused is not None:
            known = sorted(f"{d.name} = {n}" for d, n in self._refused.items())
            found.append(f"sizes: it was traced for {broken}, now {', '.join(known)}")
        return found

    def at(self, sizes: Sizes) -> Traced:
        """What was traced, for these sizes of some dimensions, and of the others for those that fit what was assumed of
        each; what it returns besides tensors is for all sizes still."""
        traced = self.traced
        known = traced.graph.dims
        traced.graph.assumptions = tuple(traced.assumptions.found.values())
        limited = limits(traced.graph.assumptions, known)
        limited |= {d.name: n for d, n in sizes.items() if d.name in known}
        with assumed(traced.graph, limited):
            graph = bind(traced.graph, limited)
        image = dict(zip(traced.graph.inputs, graph.inputs, strict=True))
        structure, effects = traced.structure, traced.effects
        if all(d in sizes for d in known.values()):
            structure = structure_at(structure, sizes)
            effects = tuple((table, name, value_at(value, sizes)) for table, name, value in effects)
        return replace(
            traced,
            graph=graph,
            inputs=tuple(image[v] for v in traced.inputs),
            arguments=tuple(replace(a, value=image[a.value]) for a in traced.arguments),
            structure=structure,
            effects=effects,
            reached={image[v]: number for v, number in traced.reached.items()},
        )


class SizedTraces:
    """The traces of one function by what their arguments are like, the newest first."""

    def __init__(self) -> None:
        self._traces: dict[Any, tuple[SizedTrace, ...]] = {}

    def find(self, key: Any, sizes: Sizes, given: Given) -> tuple[SizedTrace, list[Tensor]] | None:
        """A trace that fits a call, and the numbers that its programs take."""
        for trace in self._traces.get(key, ()):
            if (found := trace.fitting(sizes, given)) is not None:
                return trace, found
        return None

    def add(self, key: Any, trace: SizedTrace) -> None:
        """Keeps a trace."""
        self._traces[key] = (trace, *self._traces.get(key, ()))[:MOST]

    def items(self) -> dict[Any, tuple[SizedTrace, ...]]:
        """All of them."""
        return dict(self._traces)

    def clear(self) -> None:
        """Drops all."""
        self._traces.clear()


def structure_at(structure: Structure, sizes: Sizes) -> Structure:
    """A structure with numbers in the place of sizes that are known at run time."""
    if isinstance(structure, Leaf):
        return structure
    if isinstance(structure, Static):
        found = value_at(structure.value, sizes)
        return structure if found is structure.value else Static(found)
    children = tuple([structure_at(child, sizes) for child in structure.children])
    return Branch(structure.kind, structure.keys, children, structure.types)


def value_at(value: Any, sizes: Sizes) -> Any:
    """A number that was computed from sizes, for these; others as they are."""
    return value.at(sizes) if type(value) is SizeNumber else at(value, sizes)
